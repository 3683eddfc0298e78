// A plan that needs more memory than there is: refused with the line item that
// overflows and what would help: how small a micro-batch, which changes on the
// same ranks and how much longer a step then takes (remedies.h), or over how
// many ranks units are to be cut.
#ifndef TROUPE_SCHEDULER_PLANNER_FIT_H_
#define TROUPE_SCHEDULER_PLANNER_FIT_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/check_memory.h"

namespace troupe {

// InvalidArgument, beginning with a field's path. What is advised is a job that
// can be planned: within all limits of ResolveJob.
absl::Status CheckFit(const Plan& plan,
                      const std::vector<WorkerDescription>& workers,
                      const BuildPlan& build);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_FIT_H_
