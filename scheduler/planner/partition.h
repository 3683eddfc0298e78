// Cuts a model's units into the stages of a pipeline.
#ifndef TROUPE_SCHEDULER_PLANNER_PARTITION_H_
#define TROUPE_SCHEDULER_PLANNER_PARTITION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// The consecutive units of each of `stages` stages, at least one each. As
// parallelism.stages says; or, where it says nothing, so that the costliest
// stage costs as little as can be, and among such cuts the sum of squared costs
// is least, by the nominal cost of all passes over a micro-batch, embedding and
// head included (passes/nominal_cost.h): dynamic programming over cuts,
// O(stages units^2).
//
// InvalidArgument, beginning with a field's path, where there are fewer units
// than stages, or parallelism.stages does not fit.
absl::StatusOr<std::vector<std::vector<int>>> PartitionUnits(
    const std::vector<Unit>& units, int stages,
    const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PARTITION_H_
