#include "worker/calibrate/cold_bench.h"

#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ColdBench>> ColdBench::Create(
    Device& device, const Clock& clock, const Options& options) {
  ASSIGN_OR_RETURN(void* memory,
                   device.Allocate(options.elements * sizeof(float)));
  auto bench = std::unique_ptr<ColdBench>(
      new ColdBench(device, clock, options, static_cast<float*>(memory)));
  // Touched before anything is timed.
  Fill(device,
       {.x = Tensor(memory, DType::kF32, {options.elements}), .value = 0.01f});
  return bench;
}

ColdBench::~ColdBench() { device_.Free(memory_); }

Tensor ColdBench::Take(std::initializer_list<int64_t> dims, DType dtype) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  float* const start = memory_ + used_;
  used_ += (elements + 15) / 16 * 16;
  CHECK_LE(used_, options_.elements);
  const Tensor tensor(start, dtype, dims);
  Fill(device_, {.x = tensor, .value = 0.01f});
  return tensor;
}

double ColdBench::Seconds(const std::function<void()>& work) const {
  const double together = SecondsOf(clock_, options_.each, [&] {
    for (int i = 0; i < options_.calls_at_once; ++i) work();
    CHECK_OK(device_.Synchronize());
  });
  return together / options_.calls_at_once;
}

double SecondsOf(const Clock& clock, absl::Duration at_least,
                 const std::function<void()>& work) {
  constexpr int64_t kBatchNs = 100'000;  // long enough for the clock
  constexpr size_t kBatchesMin = 3;
  const int64_t begin = clock.MonotonicNanos();
  work();
  int64_t now = clock.MonotonicNanos();
  const int64_t first_ns = std::max<int64_t>(now - begin, 1);
  const int64_t calls = std::clamp<int64_t>(kBatchNs / first_ns, 1, 10000);
  std::vector<double> seconds;
  const int64_t end = now + absl::ToInt64Nanoseconds(at_least);
  do {
    const int64_t start = now;
    for (int64_t i = 0; i < calls; ++i) work();
    now = clock.MonotonicNanos();
    seconds.push_back(std::max<int64_t>(now - start, 1) * 1e-9 / calls);
  } while (now < end || seconds.size() < kBatchesMin);
  const auto median = seconds.begin() + seconds.size() / 2;
  std::nth_element(seconds.begin(), median, seconds.end());
  return *median;
}

}  // namespace troupe
