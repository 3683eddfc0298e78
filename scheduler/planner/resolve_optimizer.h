// The part of resolving a job that is about its optimizer: the settings of each
// rule by which parameters are trained (proto/plan/optimizer_rules.h). Which
// parameters a group has, scheduler/layouts/groups.h says. Used by resolve.cc
// only.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_OPTIMIZER_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_OPTIMIZER_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fills in the defaults of `optimizer` and its groups and checks their fields.
// REQUIRES a resolved model.
absl::Status ResolveOptimizer(JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_OPTIMIZER_H_
