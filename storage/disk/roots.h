// Below which directories the paths of jobs lead. A worker is started with
// `--root NAME=DIR` for each, a job then says NAME:path, and what this process
// opens, makes, renames or removes under such a path lies below DIR, also where
// somebody else puts links into DIR: the kernel resolves the path from the open
// directory and refuses what leads out of it (openat2, RESOLVE_BENEATH).
//
//   ASSIGN_OR_RETURN(const auto roots, Roots::Install({"data=/mnt/data"}));
//   RETURN_IF_ERROR(CheckJobPath("data.tokens", "data:books.tokens"));
//   OpenPath("data:books.tokens", O_RDONLY);     // path_calls.h
//
// Paths stay the texts that they are, "data:runs/step-00000050", in messages,
// records and the manifest; only storage/disk/path_calls.h takes them apart.
// All others, which come from flags, are the system's.
//
// Roots are of the process, as its working directory and its umask are: a path
// means the same to all its threads. Install them before there are any.
#ifndef TROUPE_STORAGE_DISK_ROOTS_H_
#define TROUPE_STORAGE_DISK_ROOTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace troupe {

class Roots {
 public:
  // Opens the directories, of "NAME=DIR" each, and keeps them open: what they
  // are called later is no matter. Without any, all paths are the system's.
  // InvalidArgument for a text of another form or two of one name; errors of
  // the disk name the directory; Unimplemented where the kernel has no openat2
  // (before Linux 5.6) or a filter of system calls forbids it. Requires that
  // none are installed.
  static absl::StatusOr<std::unique_ptr<Roots>> Install(
      const std::vector<std::string>& flags);
  ~Roots();
  Roots(const Roots&) = delete;
  Roots& operator=(const Roots&) = delete;

  // "data, runs".
  std::string Names() const;
  std::vector<std::string> NameList() const;

 private:
  friend struct PathBelowRoot;
  struct Root {
    std::string name;
    int fd;
  };
  Roots() = default;

  std::vector<Root> roots_;
};

// Of "NAME:path" the name: a letter, then letters, digits, '-' and '_', before
// a colon. Empty for any other text; a file of such a name is "./NAME:path".
absl::string_view RootName(absl::string_view path);

// Whether a path that a job names may be used: with roots installed it must be
// "NAME:path" of one of them. `field` begins the message: PermissionDenied for
// a path outside, InvalidArgument for a root that there is not. An empty path
// is none, and may.
absl::Status CheckJobPath(absl::string_view field, absl::string_view path);

// For programs that read beside the workers what a job names:
// FailedPrecondition where `path` is below a root of theirs that is not
// installed here. `field` begins the message.
absl::Status CheckReadableHere(absl::string_view field, absl::string_view path);

// A path below a root that is installed, for path_calls.h. Nothing for all
// others.
struct PathBelowRoot {
  int root;           // the open directory
  std::string below;  // relative to it; "." is itself

  static absl::optional<PathBelowRoot> Of(absl::string_view path);
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_ROOTS_H_
