// A way to run a job, planned and predicted to be compared with others: what a
// step takes, what it needs of memory, and what faster links would do.
#ifndef TROUPE_SCHEDULER_PLANNER_PLANNED_WAY_H_
#define TROUPE_SCHEDULER_PLANNER_PLANNED_WAY_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/short_steps.h"

namespace troupe {

// A way's plan; where its own is too long to be compared, those of two shorter
// steps, and what both say of its own.
struct PlannedWay {
  Plan plan;
  JobSpec job;  // that the plan is of
  absl::optional<ShortSteps> short_steps;
  Plan fewer;  // with them: the shorter one
  Prediction prediction;
};

struct PlanWayOptions {
  GatherRoom gather_room = GatherRoom::kAll;
  // Of longer plans shorter ones tell; absent: the plan is made as it is.
  absl::optional<int64_t> instructions_max;
  // Those are refused if they are longer than this; absent: as TryPlan.
  absl::optional<int64_t> refused_above;
  const MayGoOn& may_go_on;
};

// As if there were memory enough. Errors as those of TryPlan.
absl::StatusOr<PlannedWay> PlanWay(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const PlanWayOptions& options);

// All that follows from its prediction.
void DescribeWay(const PlannedWay& planned,
                 const std::vector<WorkerDescription>& workers,
                 ExplainedWay& way);
// Simulates the step once more, with links of twice the bandwidth.
void SetFasterLinks(const PlannedWay& planned,
                    const std::vector<WorkerDescription>& workers,
                    ExplainedWay& way);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PLANNED_WAY_H_
