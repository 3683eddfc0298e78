// Numbers as files store them, to and from f32.
#ifndef TROUPE_STORAGE_CHECKPOINT_TO_F32_H_
#define TROUPE_STORAGE_CHECKPOINT_TO_F32_H_

#include <cstdint>

#include "absl/status/status.h"
#include "storage/checkpoint/stored_dtype.h"

namespace troupe {

// Whether ToF32 knows it: F32, BF16, F16, F64.
bool ConvertsToF32(StoredDType dtype);

// `count` little-endian elements, at any alignment. Exact but for F64, which is
// rounded to the nearest. InvalidArgument for another dtype.
absl::Status ToF32(StoredDType dtype, const char* from, int64_t count,
                   float* out);

// The other way: rounded to the nearest, ties to even; NaN stays NaN.
// InvalidArgument for a dtype that is neither F32 nor BF16.
absl::Status FromF32(StoredDType dtype, const float* from, int64_t count,
                     char* out);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_TO_F32_H_
