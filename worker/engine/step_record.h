// From what a step left in SCALARS, and how long it took, to the line that
// people read.
#ifndef TROUPE_WORKER_ENGINE_STEP_RECORD_H_
#define TROUPE_WORKER_ENGINE_STEP_RECORD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "storage/checkpoint/manifest_entries.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// Plan.sums, element by element.
using Scalars = std::vector<double>;

// Of a sum of the plan that has one element.
double SumNamed(const Plan& plan, const Scalars& scalars,
                absl::string_view name);

// Mean loss over the targets that were counted; 0 where none was, as in a step
// of isolated documents of one token each.
double MeanLoss(const Plan& plan, const Scalars& scalars);

// The same of a validation; FailedPrecondition where none was counted.
absl::StatusOr<double> ValidationLoss(const Plan& plan,
                                      const Scalars& scalars);

struct FinishedStep {
  StepContext context;
  Scalars scalars;
  double seconds = 0;
  ManifestLossScale loss_scale = {};  // when it began
};

// All of the record but validation_loss and memory_bytes. Tokens/s and the
// utilisation (docs/performance.md) are those of all ranks together.
StepRecord MakeStepRecord(const Plan& plan, const FinishedStep& step);

// FailedPrecondition where loss or gradient norm is not finite: nothing that
// would follow is worth its electricity. A norm that is not may be the scale of
// the loss, as it is behind the step. In step 1 of the training, whichever
// attempt runs it, the weights are those that it began with.
absl::Status CheckFinite(const StepRecord& record, const LossScale& scale);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_STEP_RECORD_H_
