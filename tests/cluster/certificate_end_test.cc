// A cluster that has run for as long as its certificates are good for.
#include <filesystem>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"
#include "tests/cluster/cluster_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class CertificateEndTest : public ClusterTestBase {
 protected:
  std::string Client() const {
    return MemberDirectory(dir(), PeerRole::kClient);
  }
  // A client's certificate that was good for a year, until then.
  void SetEnd(absl::Time end) const {
    const MemberFiles authority = FilesOfMember(dir() + "/trust/authority");
    const KeyAndCertificate signer = {
        .key = ReadPrivateFile(authority.key).value(),
        .certificate = ReadSmallFile(authority.certificate).value()};
    CHECK_OK(WriteMemberFiles(
        Client(),
        IssueCertificate(signer,
                         {.role = PeerRole::kClient,
                          .hosts = {"127.0.0.1"},
                          .from = end - CertificateSubject::kMemberValid})
            .value(),
        signer.certificate));
  }
};

TEST_F(CertificateEndTest, IsSaidBeforeAndDoesNotKeepDownFromWaiting) {
  Up(1);
  EXPECT_THAT(Troupe({"workers"}).err, Not(HasSubstr("ends in")));
  SetEnd(absl::Now() + absl::Hours(24 * 12 + 1));
  const Outcome soon = Troupe({"workers"});
  EXPECT_EQ(soon.code, 0);
  EXPECT_THAT(soon.err, HasSubstr("trust/client ends in 12 days"));

  const int job = Submit({kEndless, "parallelism.data=1",
                          "checkpoint.directory=" + dir() + "/saved"});
  TroupeProgram watching(Command({"watch", std::to_string(job)}));
  ASSERT_NE(watching.WaitForLine("step "), "");
  SetEnd(absl::Now() - absl::Hours(1));
  EXPECT_EQ(Troupe({"workers"}).code, 1);
  const Outcome down = Troupe({"down"});
  EXPECT_EQ(down.code, 0) << down.err;
  EXPECT_THAT(down.out, Not(HasSubstr("killed")));
  EXPECT_FALSE(fs::is_empty(dir() + "/saved"));
  EXPECT_TRUE(CheckMemberFiles(Client(), PeerRole::kClient, absl::Now()).ok())
      << "down has made it anew, to ask for the job";
}

}  // namespace
}  // namespace troupe
