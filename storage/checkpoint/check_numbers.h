// Weights that are NaN or infinite train nothing, and after a step nobody can
// tell whether they were so before it. Code that reads weights or moments to
// train or to convert them checks them here, while file and tensor are known.
#ifndef TROUPE_STORAGE_CHECKPOINT_CHECK_NUMBERS_H_
#define TROUPE_STORAGE_CHECKPOINT_CHECK_NUMBERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace troupe {

struct NumbersRead {
  absl::string_view path;           // of the file
  absl::string_view tensor;         // its name
  absl::Span<const int64_t> shape;  // of the tensor
  int64_t first = 0;                // of the elements, in the flattened tensor
  int64_t count = 0;
  const char* data = nullptr;  // f32, at any alignment
};

// DataLoss names the file, the tensor and the first element that is NaN or
// infinite: "/m/model.safetensors: tensor model.norm.weight is nan at [3];
// ...".
absl::Status CheckNumbers(const NumbersRead& numbers);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_CHECK_NUMBERS_H_
