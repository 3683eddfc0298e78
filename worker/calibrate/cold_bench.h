// Times an op as a training step sees it: with operands that come from memory,
// for whatever a step touches has left the caches when it is touched again, and
// at the median, for a step takes slow calls with fast ones.
//
//   ASSIGN_OR_RETURN(auto bench, ColdBench::Create(device, clock, options));
//   const double seconds = bench->ColdSeconds<CopyArgs>(Copy, [&] {
//     return CopyArgs{.x = bench->Take({n}), .y = bench->Take({n})};
//   });
#ifndef TROUPE_WORKER_CALIBRATE_COLD_BENCH_H_
#define TROUPE_WORKER_CALIBRATE_COLD_BENCH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ops/device.h"
#include "ops/tensor.h"
#include "proto/base/clock.h"

namespace troupe {

class ColdBench {
 public:
  struct Options {
    absl::Duration each;   // how long a measurement takes, at least
    int64_t elements = 0;  // of f32, of the memory that operands lie in
    // Of how much of it cold operands are taken: more than the last level of
    // caches holds, which on most CPUs is this for one worker.
    int64_t cold_bytes = 64 << 20;
    // Calls for which the device is waited for together; more than one on a
    // GPU, which is not waited for after each op of a step.
    int calls_at_once = 1;
  };
  // ResourceExhausted where the device lacks the memory. Borrows the device and
  // the clock.
  static absl::StatusOr<std::unique_ptr<ColdBench>> Create(
      Device& device, const Clock& clock, const Options& options);
  ~ColdBench();
  ColdBench(const ColdBench&) = delete;
  ColdBench& operator=(const ColdBench&) = delete;

  Device& device() const { return device_; }

  // An operand for the measurement under way, of small numbers that are not
  // zero. Each takes the room of f32. REQUIRES that there is room.
  Tensor Take(std::initializer_list<int64_t> dims, DType dtype = DType::kF32);

  // Seconds of op(args) with operands that `take` takes: enough of them, by
  // turns, that each has left the caches when its turn comes again.
  template <typename Args>
  double ColdSeconds(const std::function<void(Device&, const Args&)>& op,
                     const std::function<Args()>& take) {
    used_ = 0;
    std::vector<Args> turns = {take()};
    const int64_t one = used_;
    const int64_t room = std::min<int64_t>(options_.elements,
                                           options_.cold_bytes / sizeof(float));
    while (used_ + one <= room) turns.push_back(take());
    size_t turn = 0;
    return Seconds([&] { op(device_, turns[turn++ % turns.size()]); });
  }

  // The same with operands that stay in the caches.
  template <typename Args>
  double WarmSeconds(const std::function<void(Device&, const Args&)>& op,
                     const std::function<Args()>& take) {
    used_ = 0;
    const Args args = take();
    return Seconds([&] { op(device_, args); });
  }

 private:
  ColdBench(Device& device, const Clock& clock, const Options& options,
            float* memory)
      : device_(device), clock_(clock), options_(options), memory_(memory) {}

  double Seconds(const std::function<void()>& work) const;

  Device& device_;
  const Clock& clock_;
  const Options options_;
  float* const memory_;
  int64_t used_ = 0;
};

// Seconds of one call of `work`: the median of batches that the clock resolves,
// after one call that is not counted.
double SecondsOf(const Clock& clock, absl::Duration at_least,
                 const std::function<void()>& work);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_COLD_BENCH_H_
