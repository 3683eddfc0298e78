// Where a job's training ends: after training.steps, or before, where
// training.stop_after asks for it. Workers end there, and each view of the job
// says so.
#ifndef TROUPE_PROTO_PLAN_LAST_STEP_H_
#define TROUPE_PROTO_PLAN_LAST_STEP_H_

#include <cstdint>

#include "proto/job.pb.h"

namespace troupe {

int64_t LastStep(const TrainingSpec& training);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LAST_STEP_H_
