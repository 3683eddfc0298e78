#include "storage/disk/roots.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

std::atomic<const Roots*> installed = nullptr;

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '-' || c == '_';
}

bool IsName(absl::string_view name) {
  return !name.empty() && absl::ascii_isalpha(name[0]) &&
         std::all_of(name.begin(), name.end(), IsNameCharacter);
}

// Whether this process can hold anybody to a root.
absl::Status TryOpenat2(int directory) {
  open_how how = {};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const int fd =
      static_cast<int>(syscall(SYS_openat2, directory, ".", &how, sizeof(how)));
  if (fd >= 0) {
    close(fd);
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(
      "--root: openat2: ", strerrorname_np(errno),
      ": the kernel is older than Linux 5.6, or a filter of system calls "
      "(seccomp) forbids it; allow it, or start the worker without --root"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Roots>> Roots::Install(
    const std::vector<std::string>& flags) {
  std::unique_ptr<Roots> roots(new Roots);
  for (const std::string& flag : flags) {
    const size_t equals = flag.find('=');
    const std::string name = flag.substr(0, equals);
    if (equals == std::string::npos || !IsName(name) ||
        equals + 1 == flag.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--root: \"", flag,
          "\" is not NAME=DIR with a name of letters, digits, '-' and '_'"));
    }
    for (const Root& other : roots->roots_) {
      if (other.name != name) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--root: there are two of the name ", name));
    }
    const std::string directory = flag.substr(equals + 1);
    const int fd = open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
      return ErrnoStatus(errno, absl::StrCat("--root ", name, ": ", directory));
    }
    roots->roots_.push_back({name, fd});
    const absl::Status usable = TryOpenat2(fd);
    if (!usable.ok()) return usable;
  }
  if (roots->roots_.empty()) return roots;
  const Roots* none = nullptr;
  CHECK(installed.compare_exchange_strong(none, roots.get()))
      << "there are roots already";
  return roots;
}

Roots::~Roots() {
  const Roots* self = this;
  installed.compare_exchange_strong(self, nullptr);
  for (const Root& root : roots_) close(root.fd);
}

std::vector<std::string> Roots::NameList() const {
  std::vector<std::string> names;
  for (const Root& root : roots_) names.push_back(root.name);
  return names;
}

std::string Roots::Names() const { return absl::StrJoin(NameList(), ", "); }

absl::string_view RootName(absl::string_view path) {
  const size_t colon = path.find(':');
  if (colon == absl::string_view::npos) return "";
  const absl::string_view name = path.substr(0, colon);
  return IsName(name) ? name : "";
}

absl::Status CheckJobPath(absl::string_view field, absl::string_view path) {
  const absl::string_view name = RootName(path);
  const Roots* const roots = installed;
  if (path.empty() || PathBelowRoot::Of(path).has_value()) {
    return absl::OkStatus();
  }
  if (roots == nullptr && name.empty()) return absl::OkStatus();
  if (roots == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ": ", path, " is below a root, ", name,
        ", and this worker has none; start it with --root ", name, "=DIR"));
  }
  if (!name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": ", path, ": this worker has no root ", name,
                     ", only ", roots->Names()));
  }
  return absl::PermissionDeniedError(
      absl::StrCat(field, ": ", path, " is not below a root of this worker (",
                   roots->Names(),
                   "); name it as ROOT:path, or start the worker with "
                   "another --root NAME=DIR"));
}

absl::Status CheckReadableHere(absl::string_view field,
                               absl::string_view path) {
  const absl::string_view name = RootName(path);
  if (name.empty() || PathBelowRoot::Of(path).has_value()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      field, ": ", path, " is below the workers' root ", name,
      "; say where that lies on this machine: --root ", name, "=DIR"));
}

absl::optional<PathBelowRoot> PathBelowRoot::Of(absl::string_view path) {
  const Roots* const roots = installed;
  if (roots == nullptr) return absl::nullopt;
  const absl::string_view name = RootName(path);
  for (const Roots::Root& root : roots->roots_) {
    if (root.name != name) continue;
    path.remove_prefix(name.size() + 1);
    // "data:" and "/step-00000050" behind one another.
    while (absl::StartsWith(path, "/")) path.remove_prefix(1);
    return PathBelowRoot{root.fd, path.empty() ? "." : std::string(path)};
  }
  return absl::nullopt;
}

}  // namespace troupe
