#include "worker/doctor/device_answers.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "worker/doctor/fitness.h"

namespace troupe {
namespace {

// A CPU, but for what a test has go wrong.
class FaultyDevice final : public Device {
 public:
  FaultyDevice() : cpu_(NewCpuDevice({.threads = 1})) {}

  DeviceKind kind() const override { return cpu_->kind(); }
  std::string Describe() const override { return "the device"; }
  int threads() const override { return 1; }
  const KernelTable& kernels() const override { return cpu_->kernels(); }
  absl::StatusOr<void*> Allocate(size_t bytes) override {
    ++allocated;
    if (full) return absl::ResourceExhaustedError("no memory is left");
    return cpu_->Allocate(bytes);
  }
  void Free(void* memory) override {
    --allocated;
    cpu_->Free(memory);
  }
  void CopyWithin(void* to, const void* from, size_t bytes) override {
    cpu_->CopyWithin(to, from, bytes);
  }
  void CopyFromHost(void* to, const void* from, size_t bytes) override {
    cpu_->CopyFromHost(to, from, bytes);
  }
  void CopyToHost(void* to, const void* from, size_t bytes) override {
    if (forgets) return;
    cpu_->CopyToHost(to, from, bytes);
  }
  void Zero(void* to, size_t bytes) override { cpu_->Zero(to, bytes); }
  absl::Status StartAfresh() override {
    ++afresh;
    if (afresh_begins != nullptr) afresh_begins->Notify();
    if (afresh_hangs != nullptr) afresh_hangs->WaitForNotification();
    return absl::OkStatus();
  }
  absl::Status Synchronize() override {
    ++synchronized;
    if (hangs != nullptr) hangs->WaitForNotification();
    return error;
  }

  int allocated = 0;
  bool full = false;
  bool forgets = false;
  absl::Status error;
  absl::Notification* hangs = nullptr;
  std::atomic<int> synchronized = 0;
  std::atomic<int> afresh = 0;
  absl::Notification* afresh_begins = nullptr;
  absl::Notification* afresh_hangs = nullptr;

 private:
  const std::unique_ptr<Device> cpu_;
};

TEST(DeviceAnswers, ADeviceThatComputesIsWell) {
  const auto cpu = NewCpuDevice({.threads = 1});
  const DeviceAsker ask(*cpu, absl::Minutes(1));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask().text, "");
  FaultyDevice device;
  EXPECT_EQ(DeviceAsker(device, absl::Minutes(1))().state, FindingState::kOk);
  EXPECT_EQ(device.allocated, 0) << "something is left";
}

TEST(DeviceAnswers, WhatItSaysIsTheReason) {
  FaultyDevice device;
  const DeviceAsker ask(device, absl::Minutes(1));
  device.full = true;
  EXPECT_EQ(ask().text, "the device: no memory is left");
  device.full = false;
  device.error = absl::InternalError("it has fallen off the bus");
  EXPECT_EQ(ask().text, "the device: it has fallen off the bus");
  EXPECT_EQ(ask().state, FindingState::kFail);
  device.error = absl::OkStatus();
  device.forgets = true;
  EXPECT_TRUE(absl::StrContains(ask().text, "not what it gives back"));
  device.forgets = false;
  EXPECT_EQ(ask().state, FindingState::kOk);
}

TEST(DeviceAnswers, OneThatHangsIsFoundInTime) {
  FaultyDevice device;
  absl::Notification goes_on;
  device.hangs = &goes_on;
  const DeviceAsker ask(device, absl::Milliseconds(5));
  for (int i = 0; i < 3; ++i) {
    const Finding finding = ask();
    EXPECT_EQ(finding.state, FindingState::kFail);
    EXPECT_EQ(finding.text,
              "the device: no answer to a copy of 4 KiB within 5ms");
  }
  goes_on.Notify();
  while (ask().state != FindingState::kOk) std::this_thread::yield();
}

// What a thread has of the device would be taken from under it.
TEST(DeviceAnswers, NothingStartsAfreshWhileAQuestionIsInTheDevice) {
  FaultyDevice device;
  absl::Notification goes_on;
  device.hangs = &goes_on;
  const DeviceAsker ask(device, absl::Milliseconds(5));
  EXPECT_EQ(ask().state, FindingState::kFail);
  const absl::Status lost = ask.StartAfresh();
  EXPECT_TRUE(absl::StartsWith(lost.message(),
                               "the device: no answer to a copy of 4 KiB "
                               "within 5ms; this process cannot use it any "
                               "more"))
      << lost;
  EXPECT_EQ(device.afresh, 0);
  goes_on.Notify();
  while (!ask.StartAfresh().ok()) std::this_thread::yield();
  EXPECT_EQ(device.afresh, 1);
}

TEST(DeviceAnswers, NoQuestionIsInTheDeviceWhileItStartsAfresh) {
  FaultyDevice device;
  absl::Notification begins;
  absl::Notification goes_on;
  device.afresh_begins = &begins;
  device.afresh_hangs = &goes_on;
  const DeviceAsker ask(device, absl::Milliseconds(5));
  std::thread afresh([&] { EXPECT_TRUE(ask.StartAfresh().ok()); });
  begins.WaitForNotification();
  EXPECT_EQ(ask().text, "the device: has started afresh for 5ms");
  EXPECT_EQ(device.synchronized, 0);
  goes_on.Notify();
  afresh.join();
  while (ask().state != FindingState::kOk) std::this_thread::yield();
}

TEST(FastChecks, AskTheDevice) {
  FaultyDevice device;
  device.full = true;
  Fitness fitness({.device = DeviceAsker(device, absl::Minutes(1))});
  EXPECT_EQ(fitness.Look(),
            std::vector<std::string>{"device: the device: no memory is left"});
}

}  // namespace
}  // namespace troupe
