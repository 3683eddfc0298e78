// The element types that a safetensors file can hold, under its own names. What
// computes has its own types; the worker maps one to the other.
#ifndef TROUPE_STORAGE_CHECKPOINT_STORED_DTYPE_H_
#define TROUPE_STORAGE_CHECKPOINT_STORED_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

enum class StoredDType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kF8E4M3,
  kF8E5M2,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
};

// "F32", "BF16", ...: as in the file.
absl::string_view StoredDTypeName(StoredDType dtype);
// InvalidArgument for a name that is none.
absl::StatusOr<StoredDType> ParseStoredDType(absl::string_view name);
// Bytes of one element.
int64_t StoredDTypeBytes(StoredDType dtype);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_STORED_DTYPE_H_
