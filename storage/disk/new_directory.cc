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

absl::Status NewDirectory::Discard() const { return RemoveTree(aside_); }

absl::Status TakeNames(const std::vector<std::string>& paths,
                       std::vector<std::string>& trees) {
  absl::Status status;
  std::set<std::string> parents;
  for (const std::string& path : paths) {
    const NewDirectory removed(path, "removed");
    const auto take = [&removed] {
      return RenamePath(removed.path(), removed.aside()) == 0 ? 0 : errno;
    };
    int error = take();
    if (error == ENOTEMPTY || error == EEXIST) {  // one of an earlier time
      status.Update(removed.Discard());
      error = take();
    }
    if (error == ENOENT) continue;
    if (error != 0) {
      status.Update(ErrnoStatus(
          error, absl::StrCat(path, ": rename to ", removed.aside())));
      continue;
    }
    trees.push_back(removed.aside());
    parents.insert(ParentDirectory(removed.path()));
  }
  for (const std::string& parent : parents) {
    status.Update(SyncDirectory(parent));
  }
  return status;
}

}  // namespace troupe
