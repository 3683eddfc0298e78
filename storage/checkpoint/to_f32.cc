#include "storage/checkpoint/to_f32.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "proto/base/bf16.h"
#include "proto/base/fp16.h"

namespace troupe {
namespace {

float FromF64(double value) { return static_cast<float>(value); }
float FromF32Itself(float value) { return value; }

template <typename Stored>
void Convert(const char* from, int64_t count, float (*convert)(Stored),
             float* out) {
  for (int64_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof(Stored), sizeof(Stored));
    out[i] = convert(stored);
  }
}

}  // namespace

bool ConvertsToF32(StoredDType dtype) {
  return dtype == StoredDType::kF32 || dtype == StoredDType::kBF16 ||
         dtype == StoredDType::kF16 || dtype == StoredDType::kF64;
}

absl::Status ToF32(StoredDType dtype, const char* from, int64_t count,
                   float* out) {
  switch (dtype) {
    case StoredDType::kF32:
      Convert<float>(from, count, FromF32Itself, out);
      return absl::OkStatus();
    case StoredDType::kBF16:
      Convert<uint16_t>(from, count, FromBF16, out);
      return absl::OkStatus();
    case StoredDType::kF16:
      Convert<uint16_t>(from, count, FromFP16, out);
      return absl::OkStatus();
    case StoredDType::kF64:
      Convert<double>(from, count, FromF64, out);
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(StoredDTypeName(dtype), " does not convert to F32"));
  }
}

absl::Status FromF32(StoredDType dtype, const float* from, int64_t count,
                     char* out) {
  if (dtype == StoredDType::kF32) {
    std::memcpy(out, from, count * sizeof(float));
    return absl::OkStatus();
  }
  if (dtype != StoredDType::kBF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("F32 does not convert to ", StoredDTypeName(dtype)));
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = ToBF16(from[i]);
    std::memcpy(out + i * sizeof(bits), &bits, sizeof(bits));
  }
  return absl::OkStatus();
}

}  // namespace troupe
