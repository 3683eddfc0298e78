// Reads tensors, or slices of them, of one safetensors file.
//
//   ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(path));
//   const SafetensorsTensor* wte = file.Find("transformer.wte.weight");
//   RETURN_IF_ERROR(file.Read(*wte, {.offset = 0, .bytes = n}, out));
#ifndef TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_
#define TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint/safetensors.h"

namespace troupe {

// Bytes of a tensor, counted from its first.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Move-only; reads are thread-safe.
class SafetensorsReader {
 public:
  // NotFound where there is no file, DataLoss where it is torn or malformed:
  // the error names the file and the offset.
  static absl::StatusOr<SafetensorsReader> Open(const std::string& path);

  SafetensorsReader(SafetensorsReader&&) noexcept;
  SafetensorsReader& operator=(SafetensorsReader&&) noexcept;
  ~SafetensorsReader();

  const std::string& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }
  // Null where the file has no such tensor. Lives as long as the reader.
  const SafetensorsTensor* Find(absl::string_view name) const;

  // OutOfRange for a range that leaves the tensor.
  absl::Status Read(const SafetensorsTensor& tensor, const ByteRange& range,
                    void* out) const;
  absl::Status ReadAll(const SafetensorsTensor& tensor, void* out) const;

 private:
  class OpenFile;
  SafetensorsReader(std::string path, SafetensorsHeader header,
                    std::unique_ptr<OpenFile> file);

  std::string path_;
  SafetensorsHeader header_;
  absl::flat_hash_map<std::string, size_t> index_;  // into header_.tensors
  std::unique_ptr<OpenFile> file_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_
