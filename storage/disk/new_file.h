// A file that appears under its name whole or not at all, whenever the process
// or the machine ends: it is written aside (<path>.tmp-<process id>), synced,
// renamed, and the directory synced. Until then, and on any error, what was
// there before stays.
//
//   ASSIGN_OR_RETURN(NewFile file, NewFile::Create(path));
//   RETURN_IF_ERROR(file.WriteAt(0, bytes));
//   RETURN_IF_ERROR(file.Commit());
//
// or, of what is in memory, ReplaceFile(path, bytes).
#ifndef TROUPE_STORAGE_DISK_NEW_FILE_H_
#define TROUPE_STORAGE_DISK_NEW_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Where a new file of this path will be: as given, links followed.
// InvalidArgument where that is a directory, a device or a pipe: those are no
// files that could be replaced.
absl::StatusOr<std::string> ReplaceablePath(const std::string& path);

// Move-only. Errors name the file and the errno.
class NewFile {
 public:
  // In a directory that is there, at ReplaceablePath(path), whose errors it
  // has. A `mode` of 0600 keeps it from others from its first byte on.
  static absl::StatusOr<NewFile> Create(const std::string& path,
                                        mode_t mode = 0644);

  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  // Removes what was written, unless it was committed.
  ~NewFile();

  // Where it will be: as given, links followed.
  const std::string& path() const { return path_; }

  absl::Status WriteAt(uint64_t offset, absl::string_view bytes) const;

  // What was written is on the disk, aside. Commit does so too.
  absl::Status Sync() const;

  // Gives it its name, durably. Call once.
  absl::Status Commit();

 private:
  NewFile(std::string path, std::string aside, int fd)
      : path_(std::move(path)), aside_(std::move(aside)), fd_(fd) {}

  std::string path_;
  std::string aside_;  // empty: nothing is there to remove
  int fd_ = -1;
};

// A file with these bytes, instead of the one that may be there.
absl::Status ReplaceFile(const std::string& path, absl::string_view bytes,
                         mode_t mode = 0644);

// Removes what processes that were killed had written aside of this path. Only
// for one that holds a lock by which no other process writes there now.
absl::Status RemoveAbandonedAsides(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DISK_NEW_FILE_H_
