// Whose calibration a prediction takes for a worker. Of a few machines each
// has its own; no two of a thousand ever measured the same, and a step waits
// for the slowest of them anyway: so of many, the slowest of a kind stands for
// all that are like it by what they are (threads, GPU), and a plan of thousands
// of ranks is predicted as fast as one of a few.
#ifndef TROUPE_SCHEDULER_SIMULATE_STAND_INS_H_
#define TROUPE_SCHEDULER_SIMULATE_STAND_INS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/cluster.pb.h"

namespace troupe {

// How many different calibrations are taken as they are.
inline constexpr int kCalibrationsMax = 64;

// By worker: the index of the one that stands for it, most often its own. What
// is slowest is so at products of this type.
std::vector<int> StandIns(absl::Span<const WorkerDescription> workers,
                          ElementType type);

// The best of all products of the type; 0: none was measured.
double BestProductRate(const Calibration& calibration, ElementType type);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_STAND_INS_H_
