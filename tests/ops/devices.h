// The devices on which the tests of ops run. Each test is a contract: it takes
// a Device and compares with a naive reference in double, so a new device joins
// by one line in TestDevices. In a build with CUDA a GPU is one of them; its
// tests skip, and say why, where there is none.
//
//   class GeluTest : public OpTest {};
//   TEST_P(GeluTest, Forward) { ... device() ... }
//   TROUPE_ON_EACH_DEVICE(GeluTest);
#ifndef TROUPE_TESTS_OPS_DEVICES_H_
#define TROUPE_TESTS_OPS_DEVICES_H_

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "ops/cuda/device.h"
#include "ops/device.h"
#include "tests/ops/test_tensor.h"

namespace troupe {

struct TestDevice {
  std::string name;
  DeviceKind kind = DeviceKind::kCpu;
  CpuDeviceOptions cpu;    // of a CPU
  CudaDeviceOptions cuda;  // of a GPU
};

inline std::vector<TestDevice> TestDevices() {
  std::vector<TestDevice> devices;
  for (const std::string& set : CpuInstructionSets()) {
    devices.push_back(
        {.name = "cpu_" + set, .cpu = {.threads = 1, .instruction_set = set}});
  }
  devices.push_back({.name = "cpu_2_threads", .cpu = {.threads = 2}});
  if (BuiltWithCuda()) {
    devices.push_back({.name = "cuda", .kind = DeviceKind::kCuda});
  }
  return devices;
}

// For what a GPU does not have.
inline std::vector<TestDevice> CpuDevices() {
  std::vector<TestDevice> devices = TestDevices();
  devices.erase(std::remove_if(devices.begin(), devices.end(),
                               [](const TestDevice& device) {
                                 return device.kind != DeviceKind::kCpu;
                               }),
                devices.end());
  return devices;
}

// For attention, which a GPU has twice.
inline std::vector<TestDevice> AttentionDevices() {
  std::vector<TestDevice> devices = TestDevices();
  if (BuiltWithCuda()) {
    devices.push_back({.name = "cuda_without_cudnn",
                       .kind = DeviceKind::kCuda,
                       .cuda = {.cudnn = false}});
  }
  return devices;
}

class OpTest : public testing::TestWithParam<TestDevice> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Device>> device = NewDevice();
    if (!device.ok()) GTEST_SKIP() << "no CUDA device: " << device.status();
    device_ = *std::move(device);
  }

  // One more of the same.
  absl::StatusOr<std::unique_ptr<Device>> NewDevice() const {
    if (GetParam().kind == DeviceKind::kCuda) {
      return NewCudaDevice(GetParam().cuda);
    }
    return NewCpuDevice(GetParam().cpu);
  }

  Device& device() { return *device_; }

  // The dtypes of activations and parameters, and those of gradients of such
  // parameters that the device has.
  static std::vector<DType> ActivationTypes() {
    return {DType::kF32, DType::kBF16, DType::kF16};
  }
  std::vector<DType> GradientTypes(DType parameters) const {
    if (parameters == DType::kF32) return {DType::kF32};
    return {DType::kF32, parameters};
  }

  // Random numbers that a float holds exactly.
  Values Random(int64_t count, double scale = 1.0) {
    std::normal_distribution<float> normal(0.0f, static_cast<float>(scale));
    Values values(count);
    for (double& v : values) v = normal(generator_);
    return values;
  }
  // And that a tensor of this dtype holds exactly.
  Values Random(DType dtype, int64_t count, double scale = 1.0) {
    return AsStored(dtype, Random(count, scale));
  }
  Values RandomInts(int64_t count, int low, int high) {
    std::uniform_int_distribution<int> uniform(low, high);
    Values values(count);
    for (double& v : values) v = uniform(generator_);
    return values;
  }

 private:
  std::unique_ptr<Device> device_;
  std::mt19937 generator_{20240607};
};

#define TROUPE_ON_DEVICES(Suite, devices)                       \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(devices), \
                           [](const auto& info) { return info.param.name; })
#define TROUPE_ON_EACH_DEVICE(Suite) TROUPE_ON_DEVICES(Suite, TestDevices())

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_DEVICES_H_
