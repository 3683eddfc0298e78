// parallelism.zero_split: by_memory. Replicas store as much as their devices
// have room for beside what is not sliced.
#ifndef TROUPE_SCHEDULER_PLANNER_WEIGHTS_BY_MEMORY_H_
#define TROUPE_SCHEDULER_PLANNER_WEIGHTS_BY_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "scheduler/planner/check_memory.h"

namespace troupe {

// The job with parallelism.zero_weights, where it says by_memory: in proportion
// to the room of each replica over what its even slice takes, on the rank where
// that is least. Even slices, where replicas hardly differ, the job has no
// slices on devices, or a worker does not say what memory it has. `build`: of
// jobs that do not say by_memory. Errors are its own.
absl::StatusOr<JobSpec> WithWeightsByMemory(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers,
    const BuildPlan& build);

// Builds jobs so, by `build`; `build_even` builds those that are looked at.
// Even slices, where `build` finds the weights invalid.
BuildPlan ByMemory(const std::vector<WorkerDescription>& workers,
                   BuildPlan build_even, BuildPlan build);

// Of a plan that does not fit: one of the same job that does, with slices by
// memory at the lowest level of ZeRO with which it fits, where `zero_is_open`,
// else at the plan's; nothing: none does. `changes`: what was changed for
// `plan`, as people read it. Errors as those of `build`, which is one of
// ByMemory.
absl::StatusOr<absl::optional<Plan>> FitWeights(
    const std::string& changes, bool zero_is_open, const Plan& plan,
    const std::vector<WorkerDescription>& workers, const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_WEIGHTS_BY_MEMORY_H_
