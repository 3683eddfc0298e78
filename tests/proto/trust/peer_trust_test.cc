#include "proto/trust/peer_trust.h"

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/proto/trust/made_up_members.h"

namespace troupe {
namespace {

constexpr char kHere[] = "127.0.0.1:1";
constexpr char kAnywhere[] = "0.0.0.0:1";

absl::Status Check(const PeerTrust& trust, const std::string& address) {
  return CheckTrust(trust, PeerRole::kWorker, address, absl::Now());
}

TEST(PeerTrust, SomethingMustBeSaid) {
  const absl::Status status = Check({}, kHere);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "--certificates DIR"));
}

TEST(PeerTrust, InsecureIsForLoopbackUnlessSaidTwice) {
  EXPECT_TRUE(Check({.insecure = 1}, kHere).ok());
  const absl::Status once = Check({.insecure = 1}, kAnywhere);
  EXPECT_TRUE(absl::IsInvalidArgument(once));
  EXPECT_TRUE(absl::StrContains(once.message(), "--insecure twice")) << once;
  EXPECT_TRUE(Check({.insecure = 2}, kAnywhere).ok());
}

TEST(PeerTrust, ACertificateMustBeOfUse) {
  const MadeUpMembers members("peer-trust");
  EXPECT_TRUE(Check(members.Member(PeerRole::kWorker), kAnywhere).ok());
  for (const PeerTrust& bad :
       {members.Member(PeerRole::kClient), members.Expired(PeerRole::kWorker),
        members.Foreign(PeerRole::kWorker),
        PeerTrust{.certificates = "/no/such"}}) {
    const absl::Status status = Check(bad, kAnywhere);
    EXPECT_FALSE(status.ok());
    EXPECT_TRUE(absl::StrContains(status.message(), bad.certificates));
    EXPECT_TRUE(
        absl::StrContains(status.message(), "troupe cluster certificate"));
  }
}

}  // namespace
}  // namespace troupe
