// The devices on which the tests of ops run. Each test is a contract: it takes
// a Device and compares with a naive reference in double, so a new device joins
// by one line in TestDevices.
//
//   class GeluTest : public OpTest {};
//   TEST_P(GeluTest, Forward) { ... device() ... }
//   TROUPE_ON_EACH_DEVICE(GeluTest);
#ifndef TROUPE_TESTS_OPS_DEVICES_H_
#define TROUPE_TESTS_OPS_DEVICES_H_

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "ops/device.h"
#include "tests/ops/test_tensor.h"

namespace troupe {

struct TestDevice {
  std::string name;
  CpuDeviceOptions cpu;
};

inline std::vector<TestDevice> TestDevices() {
  std::vector<TestDevice> devices;
  for (const std::string& set : CpuInstructionSets()) {
    devices.push_back({"cpu_" + set, {.threads = 1, .instruction_set = set}});
  }
  devices.push_back({"cpu_2_threads", {.threads = 2}});
  return devices;
}

class OpTest : public testing::TestWithParam<TestDevice> {
 protected:
  OpTest() : device_(NewCpuDevice(GetParam().cpu)) {}

  Device& device() { return *device_; }

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

#define TROUPE_ON_EACH_DEVICE(Suite)                                  \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(TestDevices()), \
                           [](const auto& info) { return info.param.name; })

}  // namespace troupe

#endif  // TROUPE_TESTS_OPS_DEVICES_H_
