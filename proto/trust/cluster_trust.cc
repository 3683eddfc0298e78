#include "proto/trust/cluster_trust.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/process_state.h"
#include "proto/base/status.h"
#include "proto/trust/certificate.h"
#include "proto/trust/member_files.h"
#include "proto/trust/private_file.h"
#include "proto/trust/worker_names.h"
#include "storage/disk/file_lock.h"

namespace troupe {
namespace {

std::string TrustDirectory(const std::string& dir) {
  return absl::StrCat(dir, "/trust");
}

bool IsThere(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

// One process at a time makes what is missing; another waits, for
// milliseconds.
absl::StatusOr<FileLock> TakeTurn(const std::string& dir) {
  RETURN_IF_ERROR(MakePrivateDirectory(TrustDirectory(dir)));
  return FileLock::Await(absl::StrCat(TrustDirectory(dir), "/lock"),
                         ThisProcessName());
}

absl::StatusOr<KeyAndCertificate> EnsureAuthority(const std::string& dir,
                                                  absl::Time now) {
  const std::string directory = absl::StrCat(TrustDirectory(dir), "/authority");
  const MemberFiles files = FilesOfMember(directory);
  KeyAndCertificate authority;
  if (IsThere(files.certificate)) {
    ASSIGN_OR_RETURN(authority.certificate, ReadSmallFile(files.certificate));
    ASSIGN_OR_RETURN(authority.key, ReadPrivateFile(files.key));
    return authority;
  }
  ASSIGN_OR_RETURN(authority, MakeAuthority(now));
  RETURN_IF_ERROR(MakePrivateDirectory(directory));
  RETURN_IF_ERROR(WritePrivateFile(files.key, authority.key));
  RETURN_IF_ERROR(WritePrivateFile(files.certificate, authority.certificate));
  return authority;
}

// Of the workers of one host.
std::vector<std::string> NamesOfHost(const std::string& host) {
  return {host, absl::StrCat(host, "-*")};
}

// Of this host's workers: those that `troupe up` starts, and others.
std::vector<std::string> LocalWorkerNames(PeerRole role) {
  if (role != PeerRole::kWorker) return {};
  std::vector<std::string> names = {"worker-*"};
  const std::string host = HostName();
  if (CheckWorkerNames(host).ok()) {
    for (std::string& of_host : NamesOfHost(host)) {
      names.push_back(std::move(of_host));
    }
  }
  return names;
}

// Whether the certificate of a worker says which names it may have; those of
// builds before protocol 16 do not.
bool IsNamed(const std::string& directory, PeerRole role) {
  if (role != PeerRole::kWorker) return true;
  const auto certificate = ReadSmallFile(FilesOfMember(directory).certificate);
  if (!certificate.ok()) return false;
  const auto names = WorkerNamesIn(*certificate);
  return names.ok() && !names->empty();
}

// Whether it can be used for some time yet, with others of this authority.
bool IsGood(const std::string& directory, PeerRole role,
            const KeyAndCertificate& authority, absl::Time now) {
  const absl::StatusOr<std::string> known =
      ReadSmallFile(FilesOfMember(directory).authority);
  return known.ok() && absl::StrContains(*known, authority.certificate) &&
         IsNamed(directory, role) &&
         CheckMemberFiles(directory, role, now).ok() &&
         CheckMemberFiles(directory, role, now + kRenewBefore).ok();
}

absl::Status EnsureMember(const std::string& dir, PeerRole role,
                          const KeyAndCertificate& authority, absl::Time now) {
  const std::string directory = MemberDirectory(dir, role);
  if (IsGood(directory, role, authority, now)) return absl::OkStatus();
  const std::vector<std::string> hosts = {HostName(), "localhost", "127.0.0.1",
                                          "::1"};
  ASSIGN_OR_RETURN(
      const KeyAndCertificate member,
      IssueCertificate(authority, {.role = role,
                                   .hosts = hosts,
                                   .worker_names = LocalWorkerNames(role),
                                   .from = now}));
  return WriteMemberFiles(directory, member, authority.certificate);
}

}  // namespace

std::string MemberDirectory(const std::string& dir, PeerRole role) {
  return absl::StrCat(TrustDirectory(dir), "/", RoleName(role));
}

std::string PageTokenFile(const std::string& dir) {
  return absl::StrCat(TrustDirectory(dir), "/page.token");
}

absl::Status EnsureClusterTrust(const std::string& dir, absl::Time now) {
  ASSIGN_OR_RETURN(const FileLock turn, TakeTurn(dir));
  ASSIGN_OR_RETURN(const KeyAndCertificate authority,
                   EnsureAuthority(dir, now));
  for (const PeerRole role : kPeerRoles) {
    RETURN_IF_ERROR(EnsureMember(dir, role, authority, now));
  }
  return absl::OkStatus();
}

namespace {

// So that nothing of others is overwritten, and no folder of others shut.
absl::Status CheckIsForMember(const std::string& directory) {
  std::error_code error;
  if (!std::filesystem::exists(directory, error)) return absl::OkStatus();
  const MemberFiles files = FilesOfMember(directory);
  bool is_member = IsThere(files.authority);
  bool is_empty = true;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory, error)) {
    is_empty = false;
    const std::string path = entry.path();
    is_member &= path == files.authority || path == files.certificate ||
                 path == files.key;
  }
  if (!error && (is_empty || is_member)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(directory,
                   " holds something else than a member's "
                   "certificate; name a folder that is not there"));
}

absl::StatusOr<std::vector<std::string>> NamesFor(
    const MemberRequest& request) {
  if (request.role != PeerRole::kWorker) {
    if (request.worker_names.empty()) return request.worker_names;
    return absl::InvalidArgumentError(absl::StrCat(
        "names of workers are for a worker's certificate, not for that of a ",
        RoleName(request.role)));
  }
  if (!request.worker_names.empty()) return request.worker_names;
  const std::string host = request.hosts.empty() ? "" : request.hosts[0];
  if (!host.empty() && !absl::StrContains(host, ':')) return NamesOfHost(host);
  return absl::InvalidArgumentError(absl::StrCat(
      host.empty() ? "no host to name workers after"
                   : absl::StrCat("no worker can be named after ", host),
      "; say with --name which names its workers may have"));
}

}  // namespace

absl::Status IssueMember(const std::string& dir, const MemberRequest& request,
                         absl::Time now) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesFor(request));
  RETURN_IF_ERROR(CheckIsForMember(request.out));
  ASSIGN_OR_RETURN(const FileLock turn, TakeTurn(dir));
  ASSIGN_OR_RETURN(const KeyAndCertificate authority,
                   EnsureAuthority(dir, now));
  ASSIGN_OR_RETURN(const KeyAndCertificate member,
                   IssueCertificate(authority, {.role = request.role,
                                                .hosts = request.hosts,
                                                .worker_names = names,
                                                .from = now}));
  return WriteMemberFiles(request.out, member, authority.certificate);
}

}  // namespace troupe
