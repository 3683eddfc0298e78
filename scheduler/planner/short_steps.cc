#include "scheduler/planner/short_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/base/status.h"
#include "scheduler/planner/fit_memory.h"
#include "scheduler/planner/plan_size.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"

namespace troupe {
namespace {

// Of the instructions that a plan may have, what is left for those that
// recomputation adds where the planner chooses it.
constexpr double kShortStepsLeave = 0.3;

JobSpec WithMicroBatches(const JobSpec& job, int count) {
  JobSpec other = job;
  TrainingSpec& training = *other.mutable_training();
  const int of_all = training.micro_batch_size() * job.parallelism().data();
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

absl::StatusOr<absl::optional<ShortSteps>> ShortStepsOf(
    const JobSpec& job, int64_t instructions_max, int fills_min) {
  ASSIGN_OR_RETURN(const JobSpec resolved, ResolveJob(job));
  // A step of fewer windows would not be one of this evaluation.
  if (resolved.evaluate()) return absl::nullopt;
  ASSIGN_OR_RETURN(
      const Draft draft,
      StartDraft(LeavesOpen(resolved.memory()) ? WithNothingChosen(resolved)
                                               : resolved));
  // A step of fewer micro-batches would be split otherwise.
  if (!draft.plan.derived().replica_micro_batches().empty()) {
    return absl::nullopt;
  }
  const PlanSize size = PlanSizeOf(draft);
  if (size.total() <= instructions_max) return absl::nullopt;
  const double room =
      (1 - kShortStepsLeave) * static_cast<double>(instructions_max) -
      static_cast<double>(size.fill);
  // Schedules take multiples of the pipeline's ranks.
  const int ranks = resolved.parallelism().pipeline();
  const int fewer = static_cast<int>(
      room / static_cast<double>(2 * ranks * size.micro_batch));
  if (fewer < fills_min ||
      2 * fewer * ranks >= draft.plan.derived().micro_batches()) {
    return absl::nullopt;
  }
  ShortSteps steps;
  steps.fewer_count = fewer * ranks;
  steps.more_count = 2 * steps.fewer_count;
  steps.count = draft.plan.derived().micro_batches();
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
