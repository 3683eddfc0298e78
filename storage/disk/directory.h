// Directories that survive a power loss. A name that was made, renamed or
// removed is on the disk only when the directory that holds it was synced;
// these functions return when it is. Errors name the path and the errno.
#ifndef TROUPE_STORAGE_DISK_DIRECTORY_H_
#define TROUPE_STORAGE_DISK_DIRECTORY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe {

// "a/b" of "a/b/": a slash at the end says nothing, but for "/" itself.
std::string WithoutSlash(const std::string& path);

// The directory in which `path` is a name; "." for a bare name, and "data:" for
// one in a root (roots.h). A slash at the end does not count: that of "a/b/" is
// "a".
std::string ParentDirectory(const std::string& path);

// Makes durable which names a directory holds. A file system that cannot be
// asked (EINVAL) is taken at its word.
absl::Status SyncDirectory(const std::string& path);

// Makes a name durable that was made or renamed to. Where the directory that
// holds it may be written but not read (mode 1733, as shared scratch often
// has), by way of all of its file system.
absl::Status SyncName(const std::string& path);

// Makes durable which names a directory and all below it hold.
absl::Status SyncTree(const std::string& path);

// Makes a directory and those above it that are missing, durably. OK where it
// is there.
absl::Status MakeDirectories(const std::string& path);

// The directories that MakeDirectories(path) would make now. A caller that
// makes them and fails removes them again:
//
//   const MissingDirectories missing(path);
//   ... MakeDirectories(path) and more, which fails ...
//   missing.RemoveEmpty();
class MissingDirectories {
 public:
  explicit MissingDirectories(const std::string& path);
  // Those of them that are there and empty.
  void RemoveEmpty() const;

 private:
  std::vector<std::string> paths_;  // the deepest first
};

// Whether files can be made in a directory, or, where it is missing, in the
// nearest one above it, as far as that can be known without leaving anything:
// the errors are of permission (EACCES, EPERM, EROFS) or say that a part of the
// path is no directory.
absl::Status CheckDirectoryTakesFiles(const std::string& path);

// rename(2), durable; both names are in one directory.
absl::Status RenameDurably(const std::string& from, const std::string& to);

// Told of the bytes of a file that was removed. An error ends the removal,
// which returns it.
using BytesRemoved = std::function<absl::Status(uint64_t bytes)>;

// Removes a file or a directory with all that it holds. OK where there is none.
// A crash may leave some of it.
absl::Status RemoveTree(const std::string& path,
                        const BytesRemoved& removed = nullptr);

// Of all files in it, as far as they can be seen.
uint64_t TreeBytes(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_DIRECTORY_H_
