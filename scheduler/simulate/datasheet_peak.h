// What the makers of a job's devices state that these compute together: what
// MFU is measured against (proto/plan/utilization.h).
#ifndef TROUPE_SCHEDULER_SIMULATE_DATASHEET_PEAK_H_
#define TROUPE_SCHEDULER_SIMULATE_DATASHEET_PEAK_H_

#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "scheduler/simulate/seats.h"

namespace troupe {

// FLOP/s of dense products of that type; workers[r] fills rank r. Ranks on one
// GPU have together what it has. 0: a worker's datasheet is not known, or it
// has no such rate.
double DatasheetPeak(ElementType type,
                     absl::Span<const WorkerDescription> workers,
                     const Seats& seats);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_DATASHEET_PEAK_H_
