// What people want to know of a plan before it runs: step time, the pipeline's
// bubble, tokens a second, utilisation, memory by line item, bytes sent, what
// moves between tiers of memory and how long that is waited for, and what
// limits.
#ifndef TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_
#define TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_

#include <cstdint>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

// What any rank touches beside its tiers and its kernels' scratch: heaps and
// stacks of its threads, the plan, connections, code that runs for the first
// time. Measured: of small jobs of 1 to 4 ranks it was 5 to 8 MiB.
inline constexpr int64_t kRankBytes = 6 << 20;

// REQUIRES CheckPrograms(plan), and a worker for each rank. `timeline`, where
// it is not null, gets the step that was simulated (StepTimeline).
Prediction Predict(const Plan& plan,
                   const std::vector<WorkerDescription>& workers,
                   Timeline* timeline = nullptr);

// Of a step in which one of the ranks that share experts gets all rows of every
// layer; 0 where none do. The plan is left as it was.
double WorstRoutingSeconds(const std::vector<WorkerDescription>& workers,
                           Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_
