#include "proto/trust/cluster_trust.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/trust/certificate.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"
#include "tests/storage/disk/power_loss.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

class ClusterTrustTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(dir_); }

  std::string Certificate(PeerRole role) const {
    return ReadSmallFile(FilesOfMember(MemberDirectory(dir_, role)).certificate)
        .value();
  }

  const std::string dir_ = testing::TempDir() + "/cluster-trust";
  const absl::Time now_ = absl::Now();
};

TEST_F(ClusterTrustTest, MakesAMemberOfEachRoleThatOnlyTheOwnerReads) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  for (const PeerRole role : kPeerRoles) {
    const absl::Status good =
        CheckMemberFiles(MemberDirectory(dir_, role), role, now_);
    EXPECT_TRUE(good.ok()) << good;
  }
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir_ + "/trust")) {
    struct stat info = {};
    ASSERT_EQ(stat(entry.path().c_str(), &info), 0);
    const bool lock = entry.path().filename() == "lock";
    if (!lock) {
      EXPECT_EQ(info.st_mode & 0077, 0) << entry.path();
    }
    files += entry.is_regular_file() && !lock ? 1 : 0;
  }
  EXPECT_EQ(files, 11);
  struct stat info = {};
  ASSERT_EQ(stat((dir_ + "/trust").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
}

TEST_F(ClusterTrustTest, LeavesWhatIsGoodAndRenewsWhatIsNearlyOver) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const std::string first = Certificate(PeerRole::kWorker);
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_ + absl::Hours(24 * 300)).ok());
  EXPECT_EQ(Certificate(PeerRole::kWorker), first);
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_ + absl::Hours(24 * 340)).ok());
  EXPECT_NE(Certificate(PeerRole::kWorker), first);
}

// To rotate the authority is to remove it.
TEST_F(ClusterTrustTest, ANewAuthorityHasNewMembers) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const std::string first = Certificate(PeerRole::kClient);
  fs::remove_all(dir_ + "/trust/authority");
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  EXPECT_NE(Certificate(PeerRole::kClient), first);
}

TEST_F(ClusterTrustTest, ADamagedMemberIsMadeAgain) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const std::string worker = MemberDirectory(dir_, PeerRole::kWorker);
  std::ofstream(worker + "/key.pem") << "half a k";
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  EXPECT_TRUE(CheckMemberFiles(worker, PeerRole::kWorker, now_).ok());
}

// A reader of the three files, whenever the machine goes down, finds a
// certificate with its own key.
TEST_F(ClusterTrustTest, ThreeFilesAreRenewedAtOnce) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const absl::Time late = now_ + absl::Hours(24 * 340);
  DiskRecording recording(fs::canonical(dir_));
  ASSERT_TRUE(EnsureClusterTrust(dir_, late).ok());
  int renewed = 0;
  recording.EachOutcome([&](const CrashOutcome& crash) {
    const MemberFiles files =
        FilesOfMember(MemberDirectory(crash.root, PeerRole::kWorker));
    const auto read = [](const std::string& path) {
      return ReadSmallFile(path).value_or("");
    };
    const KeyAndCertificate member = {.key = read(files.key),
                                      .certificate = read(files.certificate)};
    const absl::Status good = CheckCertificate(member, read(files.authority),
                                               PeerRole::kWorker, now_);
    const bool is_new =
        CheckCertificate(member, read(files.authority), PeerRole::kWorker,
                         late + absl::Hours(24 * 200))
            .ok();
    EXPECT_TRUE(good.ok() || is_new) << crash.after << ": " << good;
    renewed += is_new;
  });
  EXPECT_GT(renewed, 0);
}

// Those of workers say which names their holders may register under.
TEST_F(ClusterTrustTest, WorkersCertificatesNameTheirWorkers) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const auto names_in = [](const std::string& directory) {
    return WorkerNamesIn(
               ReadSmallFile(FilesOfMember(directory).certificate).value())
        .value();
  };
  const std::string worker = MemberDirectory(dir_, PeerRole::kWorker);
  EXPECT_EQ(names_in(worker)[0], "worker-*");
  EXPECT_TRUE(names_in(MemberDirectory(dir_, PeerRole::kClient)).empty());

  MemberRequest request = {.hosts = {"gpu-7", "10.0.0.7"}, .out = dir_ + "/7"};
  ASSERT_TRUE(IssueMember(dir_, request, now_).ok());
  EXPECT_EQ(names_in(request.out),
            (std::vector<std::string>{"gpu-7", "gpu-7-*"}));
  request.worker_names = {"ada", "bob-*"};
  ASSERT_TRUE(IssueMember(dir_, request, now_).ok());
  EXPECT_EQ(names_in(request.out), request.worker_names);
  request.worker_names = {"a b"};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueMember(dir_, request, now_)));
  request = {.hosts = {"::1"}, .out = dir_ + "/7"};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueMember(dir_, request, now_)));
  request = {.out = dir_ + "/7"};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueMember(dir_, request, now_)))
      << "it would be for no name";
  request = {.role = PeerRole::kClient,
             .hosts = {"ada"},
             .worker_names = {"ada"},
             .out = dir_ + "/7"};
  EXPECT_TRUE(absl::IsInvalidArgument(IssueMember(dir_, request, now_)));

  // One of an older build, which says none, is made anew.
  const KeyAndCertificate authority = {
      .key = ReadSmallFile(dir_ + "/trust/authority/key.pem").value(),
      .certificate =
          ReadSmallFile(dir_ + "/trust/authority/certificate.pem").value()};
  const KeyAndCertificate unnamed =
      IssueCertificate(
          authority,
          {.role = PeerRole::kWorker, .hosts = {"localhost"}, .from = now_})
          .value();
  ASSERT_TRUE(WriteMemberFiles(worker, unnamed, authority.certificate).ok());
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  EXPECT_EQ(names_in(worker)[0], "worker-*");
}

TEST_F(ClusterTrustTest, IssuesForOtherHosts) {
  const std::string out = dir_ + "/for-ada";
  ASSERT_TRUE(
      IssueMember(
          dir_,
          {.role = PeerRole::kWorker, .hosts = {"ada", "10.0.0.7"}, .out = out},
          now_)
          .ok());
  EXPECT_TRUE(CheckMemberFiles(out, PeerRole::kWorker, now_).ok());
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  EXPECT_TRUE(CheckMemberFiles(out, PeerRole::kWorker, now_).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(
      IssueMember(dir_, {.hosts = {"no host"}, .out = out}, now_)));
}

// Nor is it shut to others.
TEST_F(ClusterTrustTest, OverwritesNothingOfOthers) {
  ASSERT_TRUE(EnsureClusterTrust(dir_, now_).ok());
  const std::string busy = dir_ + "/busy";
  fs::create_directory(busy);
  std::ofstream(busy + "/thesis.tex") << "years";
  for (const std::string& out :
       {busy, dir_, dir_ + "/trust", dir_ + "/trust/authority"}) {
    const MemberRequest request = {
        .role = PeerRole::kClient, .hosts = {"ada"}, .out = out};
    EXPECT_TRUE(absl::IsAlreadyExists(IssueMember(dir_, request, now_))) << out;
  }
  const std::string empty = dir_ + "/empty";
  fs::create_directory(empty);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_TRUE(
        IssueMember(dir_,
                    {.role = PeerRole::kClient, .hosts = {"ada"}, .out = empty},
                    now_)
            .ok());
  }
}

}  // namespace
}  // namespace troupe
