#include <filesystem>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/trust/cluster_trust.h"
#include "proto/trust/member_files.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class ClusterCertificateTest : public CommandTestBase {
 protected:
  ClusterCertificateTest() { fs::remove_all(dir_); }
  const std::string dir_ = fs::path(testing::TempDir()) / "for-certificates";
};

TEST_F(ClusterCertificateTest, MakesOneForAnotherHost) {
  const std::string out = dir_ + "/gpu-7";
  for (const PeerRole role : kPeerRoles) {
    const CommandOutcome made =
        RunCommand({"cluster", "certificate", "gpu-7", "10.0.0.7", "--dir",
                    dir_, "--out", out, "--role", std::string(RoleName(role))});
    EXPECT_EQ(made.code, 0) << made.err;
    EXPECT_TRUE(absl::StrContains(made.out, "--certificates " + out))
        << made.out;
    EXPECT_TRUE(CheckMemberFiles(out, role, absl::Now()).ok());
  }
  // A scheduler that is started there by hand has its own, too.
  EXPECT_TRUE(CheckMemberFiles(MemberDirectory(dir_, PeerRole::kScheduler),
                               PeerRole::kScheduler, absl::Now())
                  .ok());
}

TEST_F(ClusterCertificateTest, SaysWhatIsWrong) {
  EXPECT_EQ(RunCommand({"cluster", "certificate", "--dir", dir_}).code, 2);
  EXPECT_EQ(RunCommand({"cluster", "certificate", "gpu-7"}).code, 2);
  EXPECT_EQ(RunCommand({"cluster", "certificate", "gpu-7", "--dir", dir_,
                        "--role", "king"})
                .code,
            2);
  const CommandOutcome bad =
      RunCommand({"cluster", "certificate", "gpu 7", "--dir", dir_, "--out",
                  dir_ + "/out"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_TRUE(absl::StrContains(bad.err, "neither a host's name")) << bad.err;
}

}  // namespace
}  // namespace troupe
