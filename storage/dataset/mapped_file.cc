#include "storage/dataset/mapped_file.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "storage/engine/errno_status.h"
#include "storage/engine/posix_file.h"

namespace troupe {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(const PosixFile file, PosixFile::Open(path, IoMode::kRead));
  ASSIGN_OR_RETURN(const uint64_t bytes, file.Size());
  MappedFile mapped;
  mapped.path_ = path;
  if (bytes == 0) return mapped;  // mmap knows no empty mapping
  void* map = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.fd(), 0);
  if (map == MAP_FAILED) {
    return ErrnoStatus(errno, absl::StrCat(path, ": mmap"));
  }
  mapped.map_ = static_cast<const char*>(map);
  mapped.size_ = bytes;
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept {
  *this = std::move(other);
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this == &other) return *this;
  Unmap();
  path_ = std::move(other.path_);
  map_ = std::exchange(other.map_, nullptr);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

MappedFile::~MappedFile() { Unmap(); }

void MappedFile::Unmap() {
  if (map_ == nullptr) return;
  CHECK_EQ(munmap(const_cast<char*>(map_), size_), 0);
  map_ = nullptr;
}

std::string FirstBytes(const std::string& path, size_t count) {
  const absl::StatusOr<PosixFile> file = PosixFile::Open(path, IoMode::kRead);
  if (!file.ok()) return "";
  const absl::StatusOr<uint64_t> bytes = file->Size();
  if (!bytes.ok()) return "";
  std::string head(std::min<uint64_t>(count, *bytes), '\0');
  return file->ReadAt(0, head.size(), head.data()).ok() ? head : "";
}

}  // namespace troupe
