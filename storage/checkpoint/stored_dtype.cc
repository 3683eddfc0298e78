#include "storage/checkpoint/stored_dtype.h"

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

struct DTypeRow {
  StoredDType dtype;
  absl::string_view name;
  int64_t bytes;
};

constexpr DTypeRow kTable[] = {
    {StoredDType::kF64, "F64", 8},        {StoredDType::kF32, "F32", 4},
    {StoredDType::kF16, "F16", 2},        {StoredDType::kBF16, "BF16", 2},
    {StoredDType::kF8E4M3, "F8_E4M3", 1}, {StoredDType::kF8E5M2, "F8_E5M2", 1},
    {StoredDType::kI64, "I64", 8},        {StoredDType::kI32, "I32", 4},
    {StoredDType::kI16, "I16", 2},        {StoredDType::kI8, "I8", 1},
    {StoredDType::kU64, "U64", 8},        {StoredDType::kU32, "U32", 4},
    {StoredDType::kU16, "U16", 2},        {StoredDType::kU8, "U8", 1},
    {StoredDType::kBool, "BOOL", 1},
};

const DTypeRow& Row(StoredDType dtype) {
  const DTypeRow& row = kTable[static_cast<int>(dtype)];
  CHECK(row.dtype == dtype) << row.name;
  return row;
}

}  // namespace

absl::string_view StoredDTypeName(StoredDType dtype) { return Row(dtype).name; }

int64_t StoredDTypeBytes(StoredDType dtype) { return Row(dtype).bytes; }

absl::StatusOr<StoredDType> ParseStoredDType(absl::string_view name) {
  for (const DTypeRow& row : kTable) {
    if (row.name == name) return row.dtype;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown dtype \"", name, "\""));
}

}  // namespace troupe
