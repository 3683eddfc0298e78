#include "worker/engine/step_record.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "proto/plan/islands.h"
#include "proto/plan/precision.h"
#include "proto/plan/sums.h"
#include "proto/plan/utilization.h"

namespace troupe {

double SumNamed(const Plan& plan, const Scalars& scalars,
                absl::string_view name) {
  return scalars.at(PlaceOfSum(plan, name).first);
}

double MeanLoss(const Plan& plan, const Scalars& scalars) {
  const double tokens = SumNamed(plan, scalars, kTokensSum);
  return tokens > 0 ? SumNamed(plan, scalars, kLossSum) / tokens : 0;
}

absl::StatusOr<double> ValidationLoss(const Plan& plan,
                                      const Scalars& scalars) {
  if (SumNamed(plan, scalars, kTokensSum) > 0) return MeanLoss(plan, scalars);
  return absl::FailedPreconditionError(
      "data: validation has no token to predict: none of its tokens counts as "
      "a "
      "target, or, with data.isolate_documents, each of its documents has one "
      "token; raise data.validation_fraction, prepare the data with records "
      "that have an answer, or use longer documents");
}

namespace {

// A sum of one element that not every plan has; 0 where there is none.
double SumIfThere(const Plan& plan, const Scalars& scalars,
                  absl::string_view name) {
  const absl::optional<SumPlace> place = FindSum(plan.sums(), name);
  return place.has_value() ? scalars.at(place->first) : 0.0;
}

// Choices of a layer's busiest expert over the mean of its experts.
double BusiestOverMean(const Scalars& scalars, const SumPlace& tokens) {
  double most = 0, all = 0;
  for (int64_t i = 0; i < tokens.elements; ++i) {
    const double count = scalars.at(tokens.first + i);
    most = std::max(most, count);
    all += count;
  }
  return all > 0 ? most * static_cast<double>(tokens.elements) / all : 0;
}

absl::optional<RouterRecord> MakeRouterRecord(const Plan& plan,
                                              const Scalars& scalars) {
  const double rows = SumIfThere(plan, scalars, kRouterTokensSum);
  if (rows == 0) return absl::nullopt;
  RouterRecord record;
  double choices = 0;
  for (const Sum& sum : plan.sums()) {
    if (sum.name() != kExpertTokensSum) continue;
    const SumPlace tokens = PlaceOfSum(plan, kExpertTokensSum, sum.unit());
    record.set_busiest_over_mean(
        std::max(record.busiest_over_mean(), BusiestOverMean(scalars, tokens)));
    for (int64_t i = 0; i < tokens.elements; ++i) {
      choices += scalars.at(tokens.first + i);
    }
  }
  const ExpertsSpec& experts = plan.job().model().experts();
  const auto step = static_cast<double>(TokensOfIsland(plan));
  record.set_dropped_share(SumIfThere(plan, scalars, kDroppedChoicesSum) /
                           choices);
  record.set_balance_loss(experts.balance_coefficient() / step *
                          SumIfThere(plan, scalars, kRouterBalanceSum));
  record.set_z_loss(experts.z_coefficient() / step *
                    SumIfThere(plan, scalars, kRouterZSum));
  record.set_entropy(SumIfThere(plan, scalars, kRouterEntropySum) / rows);
  return record;
}

// The mean of the modules' losses as it is added to the loss.
double MtpLoss(const Plan& plan, const Scalars& scalars) {
  const ModelSpec& model = plan.job().model();
  const double tokens = SumNamed(plan, scalars, kTokensSum);
  if (model.num_nextn_predict_layers() == 0 || tokens == 0) return 0;
  return model.mtp_coefficient() / model.num_nextn_predict_layers() *
         SumIfThere(plan, scalars, kAddedLossSum) / tokens;
}

// Of a job that says them one by one.
void SetSequenceLosses(const Plan& plan, const Scalars& scalars,
                       StepRecord& record) {
  const auto losses = FindSum(plan.sums(), kSequenceLossesSum);
  const auto tokens = FindSum(plan.sums(), kSequenceTokensSum);
  if (!losses.has_value() || !tokens.has_value()) return;
  SequenceLosses& sequences = *record.mutable_sequence_losses();
  for (int64_t i = 0; i < losses->elements; ++i) {
    sequences.add_losses(scalars.at(losses->first + i));
    sequences.add_counted_tokens(
        static_cast<int32_t>(scalars.at(tokens->first + i)));
  }
}

// On a server, where each step is one replica's.
absl::optional<Turn> MakeTurn(const Plan& plan, const Scalars& scalars) {
  const double batch = SumIfThere(plan, scalars, kTurnBatchSum);
  if (batch == 0) return absl::nullopt;
  Turn turn;
  turn.set_replica(
      static_cast<int>(SumIfThere(plan, scalars, kTurnReplicaSum)));
  turn.set_batch(static_cast<int64_t>(batch));
  turn.set_weights_step(
      static_cast<int64_t>(SumIfThere(plan, scalars, kTurnWeightsSum)));
  return turn;
}

}  // namespace

StepRecord MakeStepRecord(const Plan& plan, const FinishedStep& step) {
  StepRecord record;
  record.set_step(step.context.step);
  record.set_loss(MeanLoss(plan, step.scalars));
  record.set_mtp_loss(MtpLoss(plan, step.scalars));
  const double squared_norm = SumNamed(plan, step.scalars, kSquaredNormSum);
  double norm = std::sqrt(squared_norm);
  if (ScalesLoss(plan.job().training()) && !plan.job().evaluate()) {
    const bool skipped = LossScale::Overflowed(squared_norm);
    record.set_loss_scale(step.loss_scale.scale);
    record.set_skipped(skipped);
    record.set_skipped_steps(step.loss_scale.skipped_steps + skipped);
    norm /= step.loss_scale.scale;
  }
  record.set_grad_norm(norm);
  absl::optional<RouterRecord> routers = MakeRouterRecord(plan, step.scalars);
  if (routers.has_value()) *record.mutable_routers() = *std::move(routers);
  SetSequenceLosses(plan, step.scalars, record);
  absl::optional<Turn> turn = MakeTurn(plan, step.scalars);
  if (turn.has_value()) *record.mutable_turn() = *turn;
  record.set_learning_rate(step.context.learning_rate);
  record.set_step_seconds(step.seconds);
  record.set_samples_consumed(step.context.samples_before +
                              plan.job().training().global_batch_size());
  if (step.seconds > 0) {
    const double tokens_per_second =
        plan.derived().tokens_per_step() / step.seconds;
    record.set_tokens_per_second(tokens_per_second);
    record.set_mfu(ModelFlopsUtilization(tokens_per_second,
                                         plan.derived().model_flops_per_token(),
                                         UtilizationPeak(plan.prediction())));
  }
  return record;
}

absl::Status CheckFinite(const StepRecord& record, const LossScale& scale) {
  if (std::isfinite(record.loss())) {
    if (std::isfinite(record.grad_norm())) return absl::OkStatus();
    if (record.skipped() && scale.MayHelp()) return absl::OkStatus();
    if (record.skipped() && record.loss_scale() > 1) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "training.loss_scale: %g, with which gradients of each of the last "
          "steps overflowed, so that none of them changed a weight; use a "
          "smaller one, or leave it out, so that it is found",
          record.loss_scale()));
    }
  }
  const bool scaled = record.loss_scale() > 0;
  const std::string values = absl::StrFormat(
      "loss %g, gradient norm %g%s", record.loss(), record.grad_norm(),
      scaled ? absl::StrFormat(", loss scale %g", record.loss_scale()) : "");
  const char* const wider =
      scaled ? ", or training.precision bf16, whose range is that of f32" : "";
  if (record.step() == 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        values,
        " with the weights that training began with; nothing was updated yet, "
        "so the learning rate is not why: begin with smaller weights",
        wider));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "training diverged: ", values,
      "; a lower optimizer.lr, a longer lr_scheduler.warmup_steps or "
      "training.gradient_clipping may help",
      wider));
}

}  // namespace troupe
