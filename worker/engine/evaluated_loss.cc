#include "worker/engine/evaluated_loss.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "proto/plan/sums.h"
#include "proto/plan/window_words.h"

namespace troupe {

namespace {

// " (the first is window 12)", from 0 in the file, where each has its loss.
std::string FirstNotFinite(const Plan& plan, const StepRecord& record) {
  const auto& losses = record.sequence_losses().losses();
  const auto first =
      std::find_if(losses.begin(), losses.end(),
                   [](double loss) { return !std::isfinite(loss); });
  if (first == losses.end()) return "";
  const int64_t before =
      (record.step() - 1) * plan.job().training().global_batch_size();
  return absl::StrCat(" (", FirstWindowWords(before + (first - losses.begin())),
                      ")");
}

}  // namespace

absl::Status EvaluatedLoss::Add(const Plan& plan, const Scalars& scalars,
                             StepRecord& record) {
  loss_ += SumNamed(plan, scalars, kLossSum);
  targets_ += SumNamed(plan, scalars, kTokensSum);
  record.set_loss(targets_ > 0 ? loss_ / targets_ : 0);
  record.set_counted_tokens(static_cast<int64_t>(targets_));
  if (!std::isfinite(loss_)) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "loss %g: the weights give no finite loss on these windows%s; look "
        "whether training diverged, or use a training.precision of more range",
        record.loss(), FirstNotFinite(plan, record)));
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
