// Reads tensors, or slices of them, of one safetensors file.
//
//   ASSIGN_OR_RETURN(SafetensorsReader file, SafetensorsReader::Open(path));
//   const SafetensorsTensor* wte = file.Find("transformer.wte.weight");
//   RETURN_IF_ERROR(file.Read(*wte, {.offset = 0, .bytes = n}, out));
#ifndef TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_
#define TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/checkpoint/safetensors.h"
#include "storage/engine/posix_file.h"

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

  const std::string& path() const { return file_.path(); }
  const SafetensorsHeader& header() const { return header_; }
  // Null where the file has no such tensor. Lives as long as the reader.
  const SafetensorsTensor* Find(absl::string_view name) const;

  // OutOfRange for a range that leaves the tensor.
  absl::Status Read(const SafetensorsTensor& tensor, const ByteRange& range,
                    void* out) const;
  absl::Status ReadAll(const SafetensorsTensor& tensor, void* out) const;

 private:
  SafetensorsReader(PosixFile file, SafetensorsHeader header);

  PosixFile file_;
  SafetensorsHeader header_;
  absl::flat_hash_map<std::string, size_t> index_;  // into header_.tensors
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_READER_H_
