// A worker's measurement of itself: what it computes, what an instruction
// costs, and how fast two ranks of this host talk. Takes about five seconds.
#ifndef TROUPE_WORKER_CALIBRATE_CALIBRATE_H_
#define TROUPE_WORKER_CALIBRATE_CALIBRATE_H_

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"
#include "worker/calibrate/compute_rate.h"
#include "worker/calibrate/link_rate.h"

namespace troupe {

// Everything but `device` and `threads` of the message.
struct CalibrateOptions {
  ComputeRateOptions compute;
  LinkRateOptions link;
};
absl::StatusOr<Calibration> Calibrate(Device& device, const Clock& clock,
                                      const CalibrateOptions& options);

// Runs each op once, on small tensors: from then on its code, that which oneDNN
// generates, and the threads that run it are part of the process, as they will
// be in any job. Takes some tens of milliseconds.
absl::Status WarmUp(Device& device, const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_CALIBRATE_H_
