// From the job that trained a model to what the workers do that write a text
// with it: the model cut over ranks by the job's layouts and into as many
// stages as its pipeline has ranks (docs/generate.md). Pure.
#ifndef TROUPE_SCHEDULER_PLANNER_PLAN_TEXT_H_
#define TROUPE_SCHEDULER_PLANNER_PLAN_TEXT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"
#include "proto/text_plan.pb.h"

namespace troupe {

// Of the job, its model and of parallelism `tensor`, `pipeline` and, where they
// are for as many stages, `stages`. Groups have no backends yet.
// InvalidArgument: the model has no text, or cannot be cut so; begins with the
// path of the field.
absl::StatusOr<TextPlan> PlanText(const JobSpec& trained);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PLAN_TEXT_H_
