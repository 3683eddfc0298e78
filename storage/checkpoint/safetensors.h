// The safetensors format (huggingface.co/docs/safetensors), as far as a reader
// and a writer share it:
//
//   8 bytes   little-endian length of the header, N
//   N bytes   JSON: {"name": {"dtype": "F32", "shape": [2, 3],
//                             "data_offsets": [begin, end]}, ...,
//                    "__metadata__": {"key": "text"}}, padded with spaces so
//                    that
//             the data starts at a multiple of 8 bytes
//   the rest  the tensors, row-major, without holes; offsets count from here
//
// Files that others wrote (Hugging Face's) are read; ours are read by others.
#ifndef TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_H_
#define TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/checkpoint/stored_dtype.h"

namespace troupe {

struct SafetensorsTensor {
  std::string name;
  StoredDType dtype = StoredDType::kF32;
  std::vector<int64_t> shape;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
};

using SafetensorsMetadata = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<SafetensorsTensor> tensors;  // in the order of their data
  SafetensorsMetadata metadata;
  uint64_t data_offset = 0;  // of the data in the file
  uint64_t file_bytes = 0;
};

// Headers past this are refused, as the reference implementation does.
inline constexpr uint64_t kSafetensorsHeaderBytesMax = 100'000'000;

// Lays the tensors out: sets `begin`, `end` and the order (wider elements
// first, then by name, so that each tensor is aligned to its elements).
// InvalidArgument for a name that is empty, reserved or there twice.
absl::StatusOr<SafetensorsHeader> LayOutSafetensors(
    std::vector<SafetensorsTensor> tensors, SafetensorsMetadata metadata);

// The first `data_offset` bytes of the file: length, JSON, padding.
std::string FormatSafetensorsHeader(const SafetensorsHeader& header);

// Parses and validates `json`, the N bytes of the header, of a file of this
// size. DataLoss with the offset in the file for anything but tensors that fill
// the data exactly, without overlap; `path` opens each error.
struct ParseSafetensorsArgs {
  absl::string_view path;
  absl::string_view json;
  uint64_t file_bytes = 0;
};
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(
    const ParseSafetensorsArgs& args);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_SAFETENSORS_H_
