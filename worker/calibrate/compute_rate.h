// Measures how fast this worker computes: rates of the operations that fill a
// training step, each timed for a fraction of a second on sizes that a step
// has, under the conditions of a step (cold_bench.h). The planner predicts with
// them, so they are rates of our own ops, not of the hardware's data sheet.
#ifndef TROUPE_WORKER_CALIBRATE_COMPUTE_RATE_H_
#define TROUPE_WORKER_CALIBRATE_COMPUTE_RATE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"

namespace troupe {

struct ComputeRateOptions {
  // How long each rate is measured, at least; about a hundred are, on a GPU a
  // hundred and eighty.
  absl::Duration each = absl::Milliseconds(30);
  // Divides the sizes, for tests: rates of small sizes mean little.
  int shrink = 1;
  // As in cold_bench.h.
  int calls_at_once = 1;
  int64_t cold_bytes = 64 << 20;
};

// In which products and attention are measured: f32 and bf16, on a GPU also
// fp16, which processors multiply in f32.
std::vector<ElementType> MeasuredTypes(const Device& device);

// Fills in matmul, attention, memory_*, optimizer_* and elementwise_* of
// `calibration`. ResourceExhausted where the device lacks 160 MiB, or
// cold_bytes.
absl::Status MeasureComputeRates(Device& device, const Clock& clock,
                                 const ComputeRateOptions& options,
                                 Calibration& calibration);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_COMPUTE_RATE_H_
