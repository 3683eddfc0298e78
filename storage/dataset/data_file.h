// A file of data that is read piece by piece while a job trains: how datasets
// larger than memory are read. Not mapped into memory: a file that shrinks or
// whose disk fails is an error of the read then, not the end of the process.
#ifndef TROUPE_STORAGE_DATASET_DATA_FILE_H_
#define TROUPE_STORAGE_DATASET_DATA_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/engine/posix_file.h"

namespace troupe {

// Move-only; reads are thread-safe.
class DataFile {
 public:
  // Errors name the path.
  static absl::StatusOr<DataFile> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  // When it was opened, in bytes.
  uint64_t size() const { return size_; }

  // Bytes [offset, offset + bytes), which must lie in size(). DataLoss where
  // they are no longer there; what the disk says (EIO: Unavailable) where it
  // cannot read them. Both name file and offset.
  absl::Status Read(uint64_t offset, size_t bytes, char* out) const;

 private:
  DataFile(PosixFile file, uint64_t size)
      : file_(std::move(file)), size_(size) {}

  PosixFile file_;
  uint64_t size_ = 0;
};

// The first `count` bytes, fewer where the file is shorter, none where it
// cannot be read: enough to tell formats apart.
std::string FirstBytes(const std::string& path, size_t count);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_DATA_FILE_H_
