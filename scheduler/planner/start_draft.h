// The first half of compiling a resolved job: the mesh, the groups, the units
// and where they rest, and the order of computation. The passes do the second
// half.
#ifndef TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_
#define TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"
#include "scheduler/passes/draft.h"
#include "scheduler/planner/partition.h"

namespace troupe {

// workers[r] is to fill rank r: where places of the pipeline differ in speed,
// units are cut into stages by it. Fewer workers than ranks: all are equally
// fast.
//
// REQUIRES a resolved job. InvalidArgument, beginning with a field's path,
// where the model's sizes do not fit together.
absl::StatusOr<Draft> StartDraft(
    const JobSpec& resolved,
    const std::vector<WorkerDescription>& workers = {});

// A model with one unit of each kind of the job's (unit_kinds.h): what a search
// takes for the costs of all. It depends on the model, the micro-batch and what
// is frozen, and on nothing else of the job.
struct ModelKinds {
  UnitList units;
  std::vector<int> of_unit;  // of the job's units: which of these
};
absl::StatusOr<ModelKinds> KindsOfModel(const JobSpec& resolved);
// A draft of that model. REQUIRES one stage, and a job that names no units by
// their numbers. How large the model is, is not derived.
absl::StatusOr<Draft> StartDraftOfKinds(const JobSpec& resolved,
                                        const ModelKinds& kinds);

// What the stages of a draft are cut by, but memory. Asynchronous schedules are
// cut as if all were equally fast: which stage a unit is in is part of what
// they train, and measurements must not change that.
absl::StatusOr<StageLayout> StageLayoutOf(
    const Draft& draft, const std::vector<WorkerDescription>& workers);

// Whether each micro-batch goes back through the last stage directly after it
// went forward.
bool LastStageTurnsAtOnce(const ComputeOrder& order);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_START_DRAFT_H_
