#include "scheduler/planner/short_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/status.h"
#include "proto/plan/islands.h"
#include "scheduler/layouts/replicas.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/plan_size.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/resolve_micro_batches.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

JobSpec WithMicroBatches(const JobSpec& job, int count) {
  JobSpec other = job;
  TrainingSpec& training = *other.mutable_training();
  const int of_all = training.micro_batch_size() * DataOfStep(job) *
                     IslandsOf(job.parallelism());
  training.set_global_batch_size(of_all * count);
  training.set_validation_sequences(
      std::min(training.validation_sequences(), of_all));
  return other;
}

}  // namespace

double ShortSteps::At(double with_fewer, double with_more) const {
  const double each = (with_more - with_fewer) / (more_count - fewer_count);
  return with_more + each * (count - more_count);
}

absl::optional<TwoSteps> ShorterSteps(const StepLength& length,
                                      int64_t instructions_max) {
  if (!length.is_even ||
      length.with(length.micro_batches) <= instructions_max) {
    return absl::nullopt;
  }
  // Schedules take multiples of the pipeline's ranks. Without a pipeline steps
  // begin and end all the same.
  const int full = std::max(length.pipeline, 2);
  absl::optional<TwoSteps> steps;
  for (const TwoSteps& fills : {TwoSteps{2, 3}, TwoSteps{1, 2}}) {
    const TwoSteps counts = {fills.fewer * full, fills.more * full};
    if (counts.more >= length.micro_batches) continue;
    steps = counts;
    if (length.with(counts.more) <= kLongMax) break;
  }
  return steps;
}

int64_t InstructionsToCompare(const StepLength& length,
                              int64_t instructions_max) {
  const absl::optional<TwoSteps> steps = ShorterSteps(length, instructions_max);
  return steps.has_value()
             ? length.with(steps->fewer) + length.with(steps->more)
             : length.with(length.micro_batches);
}

absl::StatusOr<absl::optional<ShortSteps>> ShortStepsOf(
    const JobSpec& job, int64_t instructions_max) {
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  // A step of fewer windows would not be one of this evaluation.
  if (resolved.evaluate()) return absl::nullopt;
  ASSIGN_OR_RETURN(
      const Draft draft,
      StartDraft(LeavesOpen(resolved.memory()) ? WithNothingChosen(resolved)
                                               : resolved));
  // A step of fewer micro-batches would be split otherwise.
  if (resolved.parallelism().micro_batch_split() == kSplitBySpeed ||
      !draft.plan.derived().replica_micro_batches().empty()) {
    return absl::nullopt;
  }
  const PlanSize size = PlanSizeOf(draft);
  const StepLength length = {
      .pipeline = resolved.parallelism().pipeline(),
      .micro_batches = draft.plan.derived().micro_batches(),
      .of_micro_batch = size.micro_batch,
      .of_step = size.validate + size.fill};
  const absl::optional<TwoSteps> two = ShorterSteps(length, instructions_max);
  if (!two.has_value()) return absl::nullopt;
  ShortSteps steps;
  steps.fewer_count = two->fewer;
  steps.more_count = two->more;
  steps.count = length.micro_batches;
  // What is not resolved yet stays open.
  JobSpec given = job;
  given.mutable_training()->set_validation_sequences(
      resolved.training().validation_sequences());
  given.mutable_parallelism()->set_data(resolved.parallelism().data());
  steps.fewer = WithMicroBatches(given, steps.fewer_count);
  steps.more = WithMicroBatches(given, steps.more_count);
  return absl::make_optional(std::move(steps));
}

Prediction PredictionAt(const ShortSteps& steps, const Prediction& fewer,
                        Prediction more) {
  const double seconds = steps.At(fewer.step_seconds(), more.step_seconds());
  // Tokens of a step grow as its micro-batches do.
  if (seconds > 0) {
    more.set_tokens_per_second(more.tokens_per_second() * more.step_seconds() /
                               seconds * steps.count / steps.more_count);
  }
  more.set_step_seconds(seconds);
  for (int r = 0; r < more.ranks_size(); ++r) {
    const RankPrediction& a = fewer.ranks(r);
    RankPrediction& b = *more.mutable_ranks(r);
    b.set_bytes_sent_per_step(
        std::llround(steps.At(static_cast<double>(a.bytes_sent_per_step()),
                              static_cast<double>(b.bytes_sent_per_step()))));
    b.set_compute_seconds(steps.At(a.compute_seconds(), b.compute_seconds()));
    b.set_exposed_communication_seconds(steps.At(
        a.exposed_communication_seconds(), b.exposed_communication_seconds()));
  }
  return more;
}

}  // namespace troupe
