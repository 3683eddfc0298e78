// A file mapped into memory, read-only: how datasets larger than memory are
// read. What is not used is not loaded.
#ifndef TROUPE_STORAGE_DATASET_MAPPED_FILE_H_
#define TROUPE_STORAGE_DATASET_MAPPED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// Move-only. The file must not shrink while it is mapped.
class MappedFile {
 public:
  // Errors name the path.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  absl::string_view bytes() const { return {map_, size_}; }

 private:
  void Unmap();

  std::string path_;
  const char* map_ = nullptr;
  size_t size_ = 0;
};

// The first `count` bytes, fewer where the file is shorter, none where it
// cannot be read: enough to tell formats apart.
std::string FirstBytes(const std::string& path, size_t count);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_MAPPED_FILE_H_
