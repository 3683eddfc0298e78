// How a worker introduces itself to the planner: its device, its memory budgets
// and what it measured of itself.
#ifndef TROUPE_WORKER_SERVICE_DESCRIBE_H_
#define TROUPE_WORKER_SERVICE_DESCRIBE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/device.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"
#include "worker/service/options.h"

namespace troupe {

// REQUIRES resolved options, and those of the opened device. Measures (a few
// seconds) unless the calibration file has it; `measure_anew` measures in any
// case. The directory of the nvme tier is tried each time (a second); an error
// that begins with --nvme says why it cannot be one.
struct DescribeWorkerOptions {
  const WorkerOptions& worker;
  absl::optional<Gpu> gpu;  // what the device is, where it is one
  bool measure_anew = false;
};
absl::StatusOr<WorkerDescription> DescribeWorker(
    const DescribeWorkerOptions& options, Device& device, const Clock& clock);

// A table for people, a line for each rate.
std::string CalibrationText(const Calibration& calibration);

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_DESCRIBE_H_
