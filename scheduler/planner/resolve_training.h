// The part of resolving a job that is about the recipe: batch sizes and the
// learning rate. Used by resolve.cc only.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_TRAINING_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_TRAINING_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Fill in the message's defaults and check its fields, each by itself and
// against the messages resolved before: model, data, parallelism, training,
// optimizer, lr_scheduler.
absl::Status ResolveTraining(JobSpec& job);
absl::Status ResolveLrScheduler(JobSpec& job);

// Before anything is laid out; what each pass consists of, plan_size.h counts.
absl::Status CheckPlanLength(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_TRAINING_H_
