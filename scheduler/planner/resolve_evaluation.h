// A job that only evaluates (`evaluate: true`): the loss of its model on all of
// data.validation, and nothing is trained. It has no field that is of training
// alone.
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_EVALUATION_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_EVALUATION_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// Refuses fields that are of training alone, with what to do, and sets those
// that other parts of the planner read: each step validates
// training.global_batch_size windows. Of a job that trains it sets `evaluate`
// alone. To be called before anything else of the job is resolved.
//
// InvalidArgument begins with the field.
absl::Status ResolveEvaluation(JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_EVALUATION_H_
