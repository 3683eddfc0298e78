#include "tests/proto/trust/made_up_members.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/trust/member_files.h"

namespace troupe {

MadeUpMembers::MadeUpMembers(const std::string& name)
    : dir_(absl::StrCat(testing::TempDir(), "/", name)),
      authority_(MakeAuthority(absl::Now()).value()),
      other_authority_(MakeAuthority(absl::Now()).value()) {
  std::filesystem::remove_all(dir_);
}

PeerTrust MadeUpMembers::Member(PeerRole role) const {
  std::vector<std::string> names;
  if (role == PeerRole::kWorker) names = {"*"};
  return Write(std::string(RoleName(role)), authority_,
               {.role = role,
                .hosts = {"127.0.0.1"},
                .worker_names = names,
                .from = absl::Now()});
}

PeerTrust MadeUpMembers::UnnamedWorker() const {
  return Write(
      "unnamed-worker", authority_,
      {.role = PeerRole::kWorker, .hosts = {"127.0.0.1"}, .from = absl::Now()});
}

PeerTrust MadeUpMembers::WorkerNamed(
    const std::vector<std::string>& names) const {
  return Write("named-worker", authority_,
               {.role = PeerRole::kWorker,
                .hosts = {"127.0.0.1"},
                .worker_names = names,
                .from = absl::Now()});
}

PeerTrust MadeUpMembers::Expired(PeerRole role) const {
  return Write(absl::StrCat("expired-", RoleName(role)), authority_,
               {.role = role,
                .hosts = {"127.0.0.1"},
                .from = absl::Now() - absl::Hours(48),
                .valid = absl::Hours(24)});
}

PeerTrust MadeUpMembers::Ending(PeerRole role, absl::Duration left) const {
  return Write(absl::StrCat("ending-", RoleName(role)), authority_,
               {.role = role,
                .hosts = {"127.0.0.1"},
                .from = absl::Now(),
                .valid = left});
}

PeerTrust MadeUpMembers::Foreign(PeerRole role) const {
  return Write(absl::StrCat("foreign-", RoleName(role)), other_authority_,
               {.role = role, .hosts = {"127.0.0.1"}, .from = absl::Now()});
}

PeerTrust MadeUpMembers::Write(const std::string& name,
                               const KeyAndCertificate& by,
                               const CertificateSubject& subject) const {
  const std::string directory = absl::StrCat(dir_, "/", name);
  CHECK_OK(WriteMemberFiles(directory, IssueCertificate(by, subject).value(),
                            authority_.certificate));
  return {.certificates = directory};
}

}  // namespace troupe
