// What a job that only evaluates has measured so far: the loss of all windows
// of the steps that are done, each target with the same weight, however many of
// them a step has. The last step's record is the result.
//
//   EvaluatedLoss loss;
//   ... for each step, in their order ...
//   RETURN_IF_ERROR(loss.Add(plan, scalars, record));
#ifndef TROUPE_WORKER_ENGINE_EVALUATED_LOSS_H_
#define TROUPE_WORKER_ENGINE_EVALUATED_LOSS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "worker/engine/step_record.h"

namespace troupe {

class EvaluatedLoss {
 public:
  // Adds a step's sums over all ranks, and sets the loss and the counted tokens
  // of its record to those of all steps so far. FailedPrecondition where the
  // loss is not finite, or where the last step is done and no target was
  // counted.
  absl::Status Add(const Plan& plan, const Scalars& scalars,
                   StepRecord& record);

 private:
  double loss_ = 0;     // the sum over all targets
  double targets_ = 0;  // how many
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_EVALUATED_LOSS_H_
