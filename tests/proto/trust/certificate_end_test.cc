#include "proto/trust/certificate_end.h"

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/proto/trust/captured_log.h"
#include "tests/proto/trust/made_up_members.h"

namespace troupe {
namespace {

TEST(CertificateEnd, IsSaidAMonthBefore) {
  const MadeUpMembers members("ends");
  const PeerTrust trust = members.Member(PeerRole::kWorker);
  const absl::Time now = absl::Now();
  const auto said = [&](int days) {
    return CertificateEndsSoon(trust, PeerRole::kWorker,
                               now + absl::Hours(24 * days + 1));
  };
  EXPECT_EQ(said(0), "");
  EXPECT_EQ(said(334), "");
  EXPECT_TRUE(absl::StartsWith(
      said(352),
      "the certificate in " + trust.certificates + " ends in 12 days (2"))
      << said(352);
  EXPECT_TRUE(absl::StrContains(
      said(352), "troupe cluster certificate HOST --role worker"));
  EXPECT_TRUE(absl::StrContains(said(363), " ends in 1 day ("));
  EXPECT_TRUE(absl::StrContains(said(364), " ends today ("));
  EXPECT_TRUE(absl::StrContains(said(366), " has ended ("));
}

TEST(CertificateEnd, NothingIsSaidOfNone) {
  const absl::Time late = absl::Now() + absl::Hours(24 * 400);
  EXPECT_EQ(CertificateEndsSoon({.insecure = 1}, PeerRole::kWorker, late), "");
  EXPECT_EQ(CertificateEndsSoon({.certificates = "/no/such"}, PeerRole::kWorker,
                                late),
            "");
}

TEST(CertificateWatch, WarnsAgainAndAgain) {
  const MadeUpMembers members("watched");
  const CapturedLog log;
  {
    const CertificateWatch good(members.Member(PeerRole::kClient),
                                PeerRole::kClient);
    const CertificateWatch ends(
        members.Ending(PeerRole::kWorker, absl::Hours(50)), PeerRole::kWorker,
        absl::Milliseconds(1));
    log.Await(2, "ending-worker ends in 2 days");
  }
  EXPECT_GE(log.Count("ending-worker ends in 2 days"), 2u);
  EXPECT_EQ(log.Count("/client "), 0u);
}

}  // namespace
}  // namespace troupe
