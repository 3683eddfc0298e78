// Cuts a model's units into the stages of a pipeline.
#ifndef TROUPE_SCHEDULER_PLANNER_PARTITION_H_
#define TROUPE_SCHEDULER_PLANNER_PARTITION_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct StageLayout {
  std::vector<std::vector<int>> holders;  // pipeline ranks of each stage
  int micro_batches = 1;
};

// The consecutive units of each stage, at least one each. As parallelism.stages
// says; or, where it says nothing, by the nominal cost of all passes over a
// micro-batch, embedding and head included (passes/nominal_cost.h):
//
// * so that the costliest stage costs as little as can be, and among such cuts
//   the sum of squared costs is least: dynamic programming over cuts,
//   O(stages units^2);
// * and where ranks hold several stages, units then move between stages as long
//   as that shortens a step: all micro-batches on the busiest rank, and one on
//   the costliest stage of each other rank, while the pipeline fills and
//   drains.
//
// InvalidArgument, beginning with a field's path, where there are fewer units
// than stages, or parallelism.stages does not fit.
absl::StatusOr<std::vector<std::vector<int>>> PartitionUnits(
    const std::vector<Unit>& units, const StageLayout& layout,
    const ParallelismSpec& parallelism);

// The first of these refusals, for who has no units yet: a schedule of many
// more stages than there are units is never built.
absl::Status CheckStageCount(const ParallelismSpec& parallelism, int stages,
                             int units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PARTITION_H_
