// Cuts a model's units into the stages of a pipeline.
#ifndef TROUPE_SCHEDULER_PLANNER_PARTITION_H_
#define TROUPE_SCHEDULER_PLANNER_PARTITION_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/simulate/place_seconds.h"

namespace troupe {

// What the units of a stage need of the memory of the ranks that hold it, and
// what there is.
struct StageMemory {
  std::vector<int64_t> room;      // by place on the pipeline
  std::vector<int64_t> resident;  // by unit, whatever is computed
  std::vector<int64_t> kept;      // by unit, of each micro-batch in flight
  std::vector<int> in_flight;     // by stage: micro-batches, at most at a time
};

struct StageLayout {
  std::vector<std::vector<int>> holders;  // pipeline ranks of each stage
  int micro_batches = 1;
  PlaceSeconds seconds;                // empty: all are equally fast
  absl::optional<StageMemory> memory;  // absent: there is enough
};

// The consecutive units of each stage, at least one each. As parallelism.stages
// says; or, where it says nothing, by the cost of all passes over a
// micro-batch, embedding and head included:
//
// * What a unit costs is what it takes on the slowest rank that is to hold it.
//   Where all places are equally fast, it is the nominal cost
//   (passes/nominal_cost.h), which no measurement changes.
// * The costliest stage costs as little as can be, and among such cuts
//   the sum of squared costs is least: dynamic programming over cuts,
//   O(stages units^2).
// * Where ranks hold several stages, units then move between stages as long
//   as that shortens a step: all micro-batches on the busiest rank, and one on
//   the costliest stage of each other rank, while the pipeline fills and
//   drains.
// * With `memory`, what a stage needs beyond its place's room counts before
//   all else: cuts that fit are preferred, then those that lack least.
//
// InvalidArgument, beginning with a field's path, where there are fewer units
// than stages, or parallelism.stages does not fit.
absl::StatusOr<std::vector<std::vector<int>>> PartitionUnits(
    const std::vector<Unit>& units, const StageLayout& layout,
    const ParallelismSpec& parallelism);

// The first of these refusals, for callers that have no units yet: a schedule
// of many more stages than there are units is never built.
absl::Status CheckStageCount(const ParallelismSpec& parallelism, int stages,
                             int units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PARTITION_H_
