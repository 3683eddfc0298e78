// What the tests of the model compare numbers with.
#ifndef TROUPE_TESTS_WORKER_MODEL_NUMERIC_H_
#define TROUPE_TESTS_WORKER_MODEL_NUMERIC_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/plan.pb.h"

namespace troupe {

// Memory of a device, full of NaN at first, so that a read of memory that was
// never written is found out.
class DeviceMemory {
 public:
  DeviceMemory(Device& device, int64_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  ~DeviceMemory();

  void* get() const { return memory_; }
  float* floats() const { return static_cast<float*>(memory_); }
  absl::Span<float> span() const {
    return {floats(), static_cast<size_t>(bytes_ / 4)};
  }
  void Zero();

 private:
  Device& device_;
  int64_t bytes_;
  void* memory_;  // null where bytes is 0
};

// Uniform in [-scale, scale), from a seed.
void FillRandom(absl::Span<float> x, uint64_t seed, float scale = 1.0f);

// sum of a[i] * b[i], in double.
double Dot(absl::Span<const float> a, absl::Span<const float> b);

// |a - b| / |b|, of the norms; |a| where b is zero.
double RelativeError(absl::Span<const float> a, absl::Span<const float> b);
double RelativeError(absl::Span<const float> a, absl::Span<const double> b);

// The relative error of `gradient` against central differences of `loss` by
// each element of x (which is put back).
double GradientError(const std::function<double()>& loss, absl::Span<float> x,
                     absl::Span<const float> gradient, float delta = 1e-2f);

// A unit with the given parameters, aligned as in a plan, in one part.
struct NamedShape {
  std::string name;
  std::vector<int64_t> shape;
};
Unit UnitWith(const std::vector<NamedShape>& parameters);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_MODEL_NUMERIC_H_
