#include "storage/disk/new_directory.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/disk/directory.h"
#include "storage/disk/errno_status.h"

namespace troupe {
namespace {

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
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
  RETURN_IF_ERROR(RenameDurably(aside_, path_));
  return RemoveTree(ReplacedPath(path_));
}

absl::Status NewDirectory::PublishOrReplace() const {
  const absl::Status published = Publish();
  return absl::IsAlreadyExists(published) ? Replace() : published;
}

absl::Status NewDirectory::Replace() const {
  // What replaces is on the disk under its name before anything of the old one
  // is removed.
  if (renameat2(AT_FDCWD, aside_.c_str(), AT_FDCWD, path_.c_str(),
                RENAME_EXCHANGE) == 0) {
    RETURN_IF_ERROR(SyncDirectory(ParentDirectory(path_)));
    return RemoveTree(aside_);
  }
  if (errno != EINVAL && errno != ENOSYS) {
    return ErrnoStatus(errno, absl::StrCat(aside_, ": exchange with ", path_));
  }
  const std::string replaced = ReplacedPath(path_);
  RETURN_IF_ERROR(RemoveTree(replaced));
  RETURN_IF_ERROR(RenameDurably(path_, replaced));
  RETURN_IF_ERROR(RenameDurably(aside_, path_));
  return RemoveTree(replaced);
}

absl::Status NewDirectory::Discard() const { return RemoveTree(aside_); }

absl::Status RemoveDirectory(const std::string& path) {
  const NewDirectory removed(path, "removed");
  RETURN_IF_ERROR(removed.Discard());  // of an earlier time
  RETURN_IF_ERROR(RenameDurably(removed.path(), removed.aside()));
  return removed.Discard();
}

}  // namespace troupe
