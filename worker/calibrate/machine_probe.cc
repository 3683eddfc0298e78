#include "worker/calibrate/machine_probe.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "ops/matmul.h"
#include "proto/base/status.h"
#include "worker/calibrate/cold_bench.h"

namespace troupe {
namespace {

constexpr int kLanes = 16;
constexpr int kPasses = 16;

// Multiply-adds in chains that do not wait for each other.
float Compute(const std::array<float, 4096>& values) {
  float sums[kLanes] = {};
  for (int pass = 0; pass < kPasses; ++pass) {
    for (size_t i = 0; i < values.size(); i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sums[lane] = sums[lane] * 0.5f + values[i + lane];
      }
    }
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  return sum;
}

}  // namespace

double ProbeUs(const Clock& clock) {
  std::array<float, 4096> values;
  values.fill(1.0f);
  volatile float result = 0;
  const double us = SecondRunUs(clock, [&] { result = Compute(values); });
  static_cast<void>(result);
  return us;
}

double SecondRunUs(const Clock& clock, absl::FunctionRef<void()> run) {
  run();
  const int64_t start = clock.MonotonicNanos();
  run();
  return 1e-3 * static_cast<double>(clock.MonotonicNanos() - start);
}

absl::StatusOr<double> CalibrateProbeUs(Device& device, const Clock& clock) {
  constexpr int64_t kSide = 512;
  constexpr int kTurns = 31;
  ASSIGN_OR_RETURN(
      const std::unique_ptr<ColdBench> bench,
      ColdBench::Create(device, clock, {.elements = 3 * kSide * kSide}));
  const auto matrix = [&] { return bench->Take({kSide, kSide}); };
  const MatMulArgs product = {.a = matrix(), .b = matrix(), .c = matrix()};
  std::vector<double> taken;
  for (int turn = 0; turn < kTurns; ++turn) {
    MatMul(device, product);
    taken.push_back(ProbeUs(clock));
  }
  const auto median = taken.begin() + taken.size() / 2;
  std::nth_element(taken.begin(), median, taken.end());
  return *median;
}

}  // namespace troupe
