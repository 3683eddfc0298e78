// A file of a process's own that has its room on the disk before anything is
// written: nobody else has its lock, and it goes with it.
#ifndef TROUPE_STORAGE_SPILL_RESERVED_FILE_H_
#define TROUPE_STORAGE_SPILL_RESERVED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "storage/disk/file_lock.h"

namespace troupe {

struct ReservedFile {
  std::string path;
  FileLock lock;  // removes the file
};

// Under a new name (spill_header.h), with the header as its first line, which
// also names the holder of the lock. `bytes` are those of the file.
// ResourceExhausted, with both figures, where there is less room; Unimplemented
// where the file system has no locks, or cannot take room for later.
absl::StatusOr<ReservedFile> ReserveFile(const std::string& directory,
                                         const std::string& header,
                                         uint64_t bytes);

}  // namespace troupe

#endif  // TROUPE_STORAGE_SPILL_RESERVED_FILE_H_
