// What an instruction costs besides its work: handing it to a lane and noting
// that it is done.
#ifndef TROUPE_WORKER_CALIBRATE_OVERHEAD_H_
#define TROUPE_WORKER_CALIBRATE_OVERHEAD_H_

#include "absl/status/statusor.h"
#include "proto/base/clock.h"

namespace troupe {

// Microseconds, of instructions that do nothing, two in five of which are handed
// from one lane to another.
absl::StatusOr<double> MeasureInstructionOverheadUs(const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_OVERHEAD_H_
