#include "storage/disk/new_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>
#include <set>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"
#include "storage/disk/path_calls.h"

namespace troupe {
namespace {

bool Exists(const std::string& path) {
  struct stat info;
  return LstatPath(path, &info) == 0;
}

std::string ReplacedPath(const std::string& path) {
  return absl::StrCat(path, kReplacedMark);
}

// The name under which `path` is removed.
std::string RemovedPath(const std::string& path) {
  return absl::StrCat(path, kAsideMark, "removed");
}

// Gives `path` that name, which one of an earlier time may still have. 0, or
// the errno.
int TakeName(const std::string& path, absl::Status& status) {
  const std::string removed = RemovedPath(path);
  const auto take = [&] {
    return RenamePath(path, removed) == 0 ? 0 : errno;
  };
  const int error = take();
  if (error != ENOTEMPTY && error != EEXIST) return error;
  status.Update(RemoveTree(removed));
  return take();
}

absl::Status NotTaken(int error, const std::string& path) {
  return ErrnoStatus(error,
                     absl::StrCat(path, ": rename to ", RemovedPath(path)));
}

}  // namespace

std::string PresentPath(const std::string& path) {
  const std::string name = WithoutSlash(path);
  const std::string replaced = ReplacedPath(name);
  return !Exists(name) && Exists(replaced) ? replaced : name;
}

NewDirectory::NewDirectory(const std::string& path, absl::string_view token)
    : path_(WithoutSlash(path)),
      aside_(absl::StrCat(path_, kAsideMark, token)) {}

absl::Status NewDirectory::Make() const { return MakeDirectories(aside_); }

absl::Status NewDirectory::Publish() const {
  RETURN_IF_ERROR(SyncTree(aside_));
  return RenameDurably(aside_, path_);
}

absl::Status NewDirectory::PublishOrReplace() const {
  absl::Status published = Publish();
  if (absl::IsAlreadyExists(published)) published = Replace();
  // It means nothing any more: where it keeps its name, that is no matter.
  if (published.ok()) RenamePath(ReplacedPath(path_), aside_);
  return published;
}

absl::Status NewDirectory::Replace() const {
  // What replaces is on the disk under its name before anything of the old one
  // is removed.
  if (RenamePath(aside_, path_, RENAME_EXCHANGE) == 0) {
    return SyncName(path_);
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return ErrnoStatus(errno, absl::StrCat(aside_, ": exchange with ", path_));
  }
  const std::string replaced = ReplacedPath(path_);
  RETURN_IF_ERROR(RemoveTree(replaced));
  RETURN_IF_ERROR(RenameDurably(path_, replaced));
  return RenameDurably(aside_, path_);
}

absl::Status NewDirectory::Discard() const {
  absl::Status status;
  const int error = TakeName(aside_, status);
  if (error == ENOENT) return status;
  status.Update(error == 0 ? RemoveTree(RemovedPath(aside_))
                           : NotTaken(error, aside_));
  return status;
}

absl::Status TakeNames(const std::vector<std::string>& paths,
                       std::vector<std::string>& trees) {
  absl::Status status;
  std::set<std::string> parents;
  for (const std::string& path : paths) {
    const std::string name = WithoutSlash(path);
    const int error = TakeName(name, status);
    if (error == ENOENT) continue;
    if (error != 0) {
      status.Update(NotTaken(error, name));
      continue;
    }
    trees.push_back(RemovedPath(name));
    parents.insert(ParentDirectory(name));
  }
  for (const std::string& parent : parents) {
    status.Update(SyncDirectory(parent));
  }
  return status;
}

}  // namespace troupe
