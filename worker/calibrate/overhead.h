// What an instruction costs besides its work: handing it to a lane and noting
// that it is done.
#ifndef TROUPE_WORKER_CALIBRATE_OVERHEAD_H_
#define TROUPE_WORKER_CALIBRATE_OVERHEAD_H_

#include "absl/status/statusor.h"
#include "proto/base/clock.h"

namespace troupe {

// Microseconds, of instructions that do nothing: one lane's, every fourth of
// them waited for by another lane, as in a training step.
absl::StatusOr<double> MeasureInstructionOverheadUs(const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_OVERHEAD_H_
