// Jobs that say the loss of each sequence by itself (JobSpec.sequence_losses).
// The op of the loss adds each sequence to an element of its own of two of the
// plan's sums (proto/plan/sum_names.h). The element is the sequence's place in
// the step, so any plan adds up the same.
#ifndef TROUPE_PROTO_PLAN_SEQUENCE_LOSSES_H_
#define TROUPE_PROTO_PLAN_SEQUENCE_LOSSES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Sequences of a step, each with a loss of its own; 0: none has one. REQUIRES
// a resolved job.
int64_t StepSequences(const JobSpec& job);

// FailedPrecondition, naming table and op, unless the op of the model's loss
// has as many sequences as the job says, and no other op has any; and unless
// the micro-batches of all replicas have a place within them.
absl::Status CheckSequenceLosses(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_SEQUENCE_LOSSES_H_
