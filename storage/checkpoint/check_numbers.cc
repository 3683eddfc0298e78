#include "storage/checkpoint/check_numbers.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

// Looked at together, by vectors.
constexpr int64_t kTogether = 1024;

constexpr uint32_t kExponent = 0x7f800000;

bool IsNumber(uint32_t bits) { return (bits & kExponent) != kExponent; }

bool AreNumbers(const char* data, int64_t count) {
  uint32_t bits[kTogether];
  std::memcpy(bits, data, count * sizeof(uint32_t));
  uint32_t others = 0;
  for (int64_t i = 0; i < count; ++i) others += IsNumber(bits[i]) ? 0 : 1;
  return others == 0;
}

// "3, 5" in a tensor of the shape.
std::string IndexText(int64_t element, absl::Span<const int64_t> shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t dim = shape.size(); dim-- > 0;) {
    index[dim] = element % shape[dim];
    element /= shape[dim];
  }
  return absl::StrJoin(index, ", ");
}

}  // namespace

absl::Status CheckNumbers(const NumbersRead& numbers) {
  for (int64_t begin = 0; begin < numbers.count; begin += kTogether) {
    const char* const data = numbers.data + begin * sizeof(float);
    const int64_t count = std::min(kTogether, numbers.count - begin);
    if (AreNumbers(data, count)) continue;
    int64_t i = 0;
    while (AreNumbers(data + i * sizeof(float), 1)) ++i;
    float value;
    std::memcpy(&value, data + i * sizeof(float), sizeof(value));
    return absl::DataLossError(absl::StrFormat(
        "%s: tensor %s is %f at [%s]; the file holds this, and this run has "
        "changed nothing yet: start from other weights or an earlier "
        "checkpoint",
        numbers.path, numbers.tensor, value,
        IndexText(numbers.first + begin + i, numbers.shape)));
  }
  return absl::OkStatus();
}

}  // namespace troupe
