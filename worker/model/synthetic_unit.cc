#include "worker/model/synthetic_unit.h"

#include <sys/prctl.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <vector>

#include "proto/base/check.h"

namespace troupe {
namespace {

// From its construction on; an absolute time, so that what happens in between
// does not add to it.
class Deadline {
 public:
  explicit Deadline(double seconds) {
    constexpr int64_t kNanos = 1'000'000'000;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &end_), 0);
    const int64_t nanos = end_.tv_nsec + static_cast<int64_t>(seconds * kNanos);
    end_.tv_sec += nanos / kNanos;
    end_.tv_nsec = nanos % kNanos;
  }

  void Await() const {
    // Linux lets a thread sleep 50 us longer unless it is told otherwise.
    static thread_local const int slack = prctl(PR_SET_TIMERSLACK, 1UL);
    CHECK_EQ(slack, 0) << "PR_SET_TIMERSLACK";
    int error = EINTR;
    while (error == EINTR) {
      error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end_, nullptr);
    }
    CHECK_EQ(error, 0) << "clock_nanosleep";
  }

 private:
  timespec end_{};
};

class SyntheticUnit final : public ModelUnit {
 public:
  explicit SyntheticUnit(const SyntheticUnitOptions& options)
      : options_(options) {}

  const Unit& spec() const override { return options_.unit; }

  void Forward(Device& device, const MicroBatchContext&,
               const UnitBuffers& buffers) const override {
    const Deadline deadline(spec().forward().wait_seconds());
    Write(device, buffers.output, spec().activation_bytes());
    if (buffers.scalars != nullptr) CountTokens(device, buffers.scalars);
    deadline.Await();
  }

  // It keeps what it makes.
  void Recompute(Device&, const MicroBatchContext&,
                 const UnitBuffers&) const override {}

  void BackwardInput(Device& device, const MicroBatchContext&,
                     const UnitBuffers& buffers) const override {
    const Deadline deadline(spec().backward_input().wait_seconds());
    Write(device, buffers.input_gradient, options_.input_bytes);
    deadline.Await();
  }

  void BackwardWeight(Device&, const MicroBatchContext&,
                      const UnitBuffers&) const override {
    Deadline(spec().backward_weight().wait_seconds()).Await();
  }

 private:
  static void Write(Device& device, void* to, int64_t bytes) {
    if (to != nullptr) device.Zero(to, bytes);
  }

  // In each element of its sums, which only copies reach. What goes wrong on
  // the device, the end of the step says.
  void CountTokens(Device& device, double* scalars) const {
    for (const SumPlace& place : options_.counts) {
      std::vector<double> counts(place.elements);
      const size_t bytes = counts.size() * sizeof(double);
      device.CopyToHost(counts.data(), scalars + place.first, bytes);
      device.Synchronize().IgnoreError();
      for (double& count : counts) {
        count += static_cast<double>(options_.tokens);
      }
      device.CopyFromHost(scalars + place.first, counts.data(), bytes);
      device.Synchronize().IgnoreError();
    }
  }

  const SyntheticUnitOptions options_;
};

}  // namespace

std::unique_ptr<ModelUnit> NewSyntheticUnit(
    const SyntheticUnitOptions& options) {
  CHECK_EQ(options.unit.kind(), Unit::SYNTHETIC);
  return std::make_unique<SyntheticUnit>(options);
}

}  // namespace troupe
