#include "tests/worker/model/numeric.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "proto/plan/model.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

template <typename B>
double Error(absl::Span<const float> a, absl::Span<const B> b) {
  CHECK_EQ(a.size(), b.size());
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    difference += d * d;
    norm += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return std::sqrt(difference / (norm > 0 ? norm : 1));
}

}  // namespace

DeviceMemory::DeviceMemory(Device& device, int64_t bytes)
    : device_(device), bytes_(bytes), memory_(nullptr) {
  if (bytes == 0) return;
  auto memory = device.Allocate(bytes);
  CHECK_OK(memory.status());
  memory_ = *memory;
  std::memset(memory_, 0xff, bytes);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(other.device_),
      bytes_(std::exchange(other.bytes_, 0)),
      memory_(std::exchange(other.memory_, nullptr)) {}

DeviceMemory::~DeviceMemory() {
  if (memory_ != nullptr) device_.Free(memory_);
}

void DeviceMemory::Zero() {
  if (bytes_ > 0) device_.Zero(memory_, bytes_);
}

void FillRandom(absl::Span<float> x, uint64_t seed, float scale) {
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = scale * (2 * PhiloxUniform(PhiloxUint32({.seed = seed}, i)) - 1);
  }
}

double Dot(absl::Span<const float> a, absl::Span<const float> b) {
  CHECK_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

double RelativeError(absl::Span<const float> a, absl::Span<const float> b) {
  return Error<float>(a, b);
}

double RelativeError(absl::Span<const float> a, absl::Span<const double> b) {
  return Error<double>(a, b);
}

double GradientError(const std::function<double()>& loss, absl::Span<float> x,
                     absl::Span<const float> gradient, float delta) {
  std::vector<double> differences;
  for (float& element : x) {
    const float kept = element;
    element = kept + delta;
    const float above = element;
    const double loss_above = loss();
    element = kept - delta;
    const double step = static_cast<double>(above) - element;
    differences.push_back((loss_above - loss()) / step);
    element = kept;
  }
  return RelativeError(gradient, differences);
}

Unit UnitWith(const std::vector<NamedShape>& parameters) {
  Unit unit;
  for (const NamedShape& named : parameters) {
    Parameter& parameter = *unit.add_parameters();
    parameter.set_name(named.name);
    parameter.set_dtype(F32);
    parameter.set_offset(unit.flat_elements());
    int64_t elements = 1;
    for (const int64_t dim : named.shape) {
      *parameter.add_dims() = DimOf({{Dim::HIDDEN, dim}});
      elements *= dim;
    }
    unit.set_flat_elements(unit.flat_elements() +
                           (elements + kFlatAlignment - 1) / kFlatAlignment *
                               kFlatAlignment);
  }
  unit.add_parts()->set_elements(unit.flat_elements());
  return unit;
}

}  // namespace troupe
