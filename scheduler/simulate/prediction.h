// What people want to know of a plan before it runs: step time, the pipeline's
// bubble, tokens a second, utilisation, memory by line item, bytes sent, and
// what limits.
#ifndef TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_
#define TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckPrograms(plan), and a worker for each rank.
Prediction Predict(const Plan& plan,
                   const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PREDICTION_H_
