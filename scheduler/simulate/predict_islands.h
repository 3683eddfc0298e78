// What islands gain by exchanging now and then (IslandsPrediction).
#ifndef TROUPE_SCHEDULER_SIMULATE_PREDICT_ISLANDS_H_
#define TROUPE_SCHEDULER_SIMULATE_PREDICT_ISLANDS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES a plan with islands, and a worker for each rank.
IslandsPrediction PredictIslands(const Plan& plan,
                                 const std::vector<WorkerDescription>& workers);

// Bytes that a rank sends to other islands between two exchanges of the same
// weights; and what it would send in as many steps of data parallelism over the
// same ranks, in which gradients take the change's place.
int64_t IslandBytesSent(const Plan& plan, int rank);
int64_t DataParallelBytesSent(const Plan& plan, int rank);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_PREDICT_ISLANDS_H_
