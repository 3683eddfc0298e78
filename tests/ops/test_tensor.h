// Tensors that own their memory, and values in double to compare them with.
#ifndef TROUPE_TESTS_OPS_TEST_TENSOR_H_
#define TROUPE_TESTS_OPS_TEST_TENSOR_H_

#include <cmath>
#include <utility>
#include <vector>

#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/base/bf16.h"
#include "proto/base/check.h"
#include "proto/base/fp16.h"

namespace troupe {

using Values = std::vector<double>;

// How far, by RelativeError, what an op stores may be from a reference in
// double that starts from the same stored inputs. In bf16 and fp16 the one
// rounding of each element is all that may be lost, at most 2^-8 and 2^-11 of
// it: no arithmetic is done in them. Sums that an op leaves in f32 keep to
// kF32Error whatever they sum.
constexpr double kF32Error = 1e-5;
constexpr double kBF16Error = 1.0 / 256 + kF32Error;
constexpr double kFP16Error = 1.0 / 2048 + kF32Error;
inline double ErrorOf(DType dtype, double f32_error = kF32Error) {
  return dtype == DType::kBF16  ? kBF16Error
         : dtype == DType::kF16 ? kFP16Error
                                : f32_error;
}

// What a number becomes in a tensor of this dtype.
inline double RoundedTo(DType dtype, double value) {
  const float number = static_cast<float>(value);
  if (dtype == DType::kBF16) return FromBF16(ToBF16(number));
  if (dtype == DType::kF16) return FromFP16(ToFP16(number));
  return number;
}

// What a tensor of this dtype holds when it is given these values.
inline Values AsStored(DType dtype, Values values) {
  for (double& v : values) v = RoundedTo(dtype, v);
  return values;
}

// Memory of a device with a dense tensor over it.
class TestTensor {
 public:
  TestTensor(Device& device, DType dtype, std::vector<int64_t> dims)
      : device_(device), dtype_(dtype), dims_(std::move(dims)) {
    count_ = 1;
    for (int64_t dim : dims_) count_ *= dim;
    absl::StatusOr<void*> memory =
        device_.Allocate(count_ * DTypeBytes(dtype) + 1);
    CHECK_OK(memory.status());
    memory_ = *memory;
  }
  // With these contents.
  TestTensor(Device& device, std::vector<int64_t> dims, const Values& values,
             DType dtype = DType::kF32)
      : TestTensor(device, dtype, std::move(dims)) {
    Write(values);
  }
  TestTensor(const TestTensor&) = delete;
  ~TestTensor() { device_.Free(memory_); }

  Tensor tensor() const {
    const auto& d = dims_;
    switch (d.size()) {
      case 1:
        return Tensor(memory_, dtype_, {d[0]});
      case 2:
        return Tensor(memory_, dtype_, {d[0], d[1]});
      case 3:
        return Tensor(memory_, dtype_, {d[0], d[1], d[2]});
    }
    CHECK(false) << d.size() << " dims";
    return Tensor();
  }
  operator Tensor() const { return tensor(); }

  template <typename T>
  void WriteAs(const Values& values) {
    CHECK_EQ(values.size(), static_cast<size_t>(count_));
    const std::vector<T> host(values.begin(), values.end());
    device_.CopyFromHost(memory_, host.data(), count_ * sizeof(T));
    CHECK_OK(device_.Synchronize());
  }
  void Write(const Values& values) {
    if (dtype_ == DType::kF32) return WriteAs<float>(values);
    if (dtype_ == DType::kI32) return WriteAs<int32_t>(values);
    if (dtype_ == DType::kBF16) {
      Values bits = values;
      for (double& v : bits) v = ToBF16(static_cast<float>(v));
      return WriteAs<uint16_t>(bits);
    }
    if (dtype_ == DType::kF16) {
      Values bits = values;
      for (double& v : bits) v = ToFP16(static_cast<float>(v));
      return WriteAs<uint16_t>(bits);
    }
    WriteAs<double>(values);
  }
  template <typename T>
  Values ReadAs() const {
    std::vector<T> host(count_);
    device_.CopyToHost(host.data(), memory_, count_ * sizeof(T));
    CHECK_OK(device_.Synchronize());
    return Values(host.begin(), host.end());
  }
  Values Read() const {
    if (dtype_ == DType::kF32) return ReadAs<float>();
    if (dtype_ == DType::kI32) return ReadAs<int32_t>();
    if (dtype_ == DType::kBF16) {
      Values values = ReadAs<uint16_t>();
      for (double& v : values) v = FromBF16(static_cast<uint16_t>(v));
      return values;
    }
    if (dtype_ == DType::kF16) {
      Values values = ReadAs<uint16_t>();
      for (double& v : values) v = FromFP16(static_cast<uint16_t>(v));
      return values;
    }
    return ReadAs<double>();
  }

 private:
  Device& device_;
  DType dtype_;
  std::vector<int64_t> dims_;
  int64_t count_;
  void* memory_;
};

// ||got - want|| / ||want||, or ||got|| where want is zero; NaN fails any
// bound.
inline double RelativeError(const Values& got, const Values& want) {
  CHECK_EQ(got.size(), want.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  return std::sqrt(norm == 0 ? difference : difference / norm);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_TEST_TENSOR_H_
