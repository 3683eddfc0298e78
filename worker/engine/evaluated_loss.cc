#include "worker/engine/evaluated_loss.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/plan/sums.h"

namespace troupe {

absl::Status EvaluatedLoss::Add(const Plan& plan, const Scalars& scalars,
                             StepRecord& record) {
  loss_ += SumNamed(plan, scalars, kLossSum);
  targets_ += SumNamed(plan, scalars, kTokensSum);
  record.set_loss(targets_ > 0 ? loss_ / targets_ : 0);
  record.set_counted_tokens(static_cast<int64_t>(targets_));
  if (!std::isfinite(loss_)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "loss %g: the weights give no finite loss on these windows; look "
        "whether training diverged, or use a training.precision of more range",
        record.loss()));
  }
  if (targets_ == 0 && record.step() == plan.job().training().steps()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "data.validation: ", plan.job().data().validation(),
        " has no token to predict: none of its tokens counts as a target, or, "
        "with data.isolate_documents, each of its documents has one token; use "
        "records that have an answer, or longer documents"));
  }
  return absl::OkStatus();
}

}  // namespace troupe
