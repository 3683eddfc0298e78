// A CPU device that adds up the time and the calls of each kernel: where a step
// goes.
//
//   TimingDevice device(NewCpuDevice({.threads = 2}));
//   ... train on device ...
//   for (const auto& [name, seconds] : device.seconds()) ...
//
// One thread at a time.
#ifndef TROUPE_TESTS_BENCH_TIMING_DEVICE_H_
#define TROUPE_TESTS_BENCH_TIMING_DEVICE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {

class TimingDevice final : public Device {
 public:
  explicit TimingDevice(std::unique_ptr<Device> device);

  // By kernel; products also by shape, "matmul 1024x768x3072 nn".
  const std::map<std::string, double>& seconds() const { return seconds_; }
  // By the same names; since it was made.
  const std::map<std::string, int64_t>& calls() const { return calls_; }
  void Reset() { seconds_.clear(); }
  void Count(const std::string& name, double seconds) {
    seconds_[name] += seconds;
    ++calls_[name];
  }
  Device& timed() { return *device_; }

  DeviceKind kind() const override { return device_->kind(); }
  std::string Describe() const override { return device_->Describe(); }
  int threads() const override { return device_->threads(); }
  const KernelTable& kernels() const override;
  absl::StatusOr<void*> Allocate(size_t bytes) override;
  void Free(void* memory) override;
  void CopyWithin(void* to, const void* from, size_t bytes) override;
  void CopyFromHost(void* to, const void* from, size_t bytes) override;
  void CopyToHost(void* to, const void* from, size_t bytes) override;
  void Zero(void* to, size_t bytes) override;
  absl::Status Synchronize() override { return device_->Synchronize(); }

 private:
  std::unique_ptr<Device> device_;
  std::map<std::string, double> seconds_;
  std::map<std::string, int64_t> calls_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_TIMING_DEVICE_H_
