#include "scheduler/planner/plan_size.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/plan/fields.h"
#include "proto/plan/replica_share.h"
#include "proto/plan/sharing.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

// Of one unit on one micro-batch (scheduler/passes/expand_order.h).
int64_t InstructionsOf(const UnitPasses& passes, int unit,
                       Instruction::Kind kind) {
  int64_t instructions = 0;
  for (const UnitPasses::Pass& pass : passes.Of(unit, kind)) {
    if (pass.use.works) ++instructions;
    const int exchange = pass.segment.exchange;
    if (exchange < 0 || kind == Instruction::BACKWARD_WEIGHT) continue;
    const bool moves =
        kind != Instruction::RECOMPUTE || passes.ExchangesAgain(unit, exchange);
    if (moves) ++instructions;
  }
  return instructions;
}

// The row that cuts units over most ranks: their exchanges are what makes a
// single micro-batch long. nullptr: none does.
const LayoutRow* LargestCut(const ParallelismSpec& parallelism) {
  const LayoutRow* largest = nullptr;
  int most = 1;
  for (const LayoutRow* const row : RowsInUse(parallelism)) {
    const int ranks = RanksOf(parallelism, std::string(row->field));
    if (ranks <= most || !CutsWithinSamples(*row)) continue;
    largest = row;
    most = ranks;
  }
  return largest;
}

absl::Status TooLong(const Draft& draft, const PlanSize& size,
                     int64_t instructions_max) {
  const JobSpec& job = draft.plan.job();
  const TrainingSpec& training = job.training();
  const int64_t replicas = job.parallelism().data();
  const std::string most =
      absl::StrCat(size.total(), " instructions, and at most ",
                   instructions_max, " are planned");
  if (job.evaluate()) {
    const int64_t micro_batches =
        std::max<int64_t>(1, instructions_max / size.validation_micro_batch);
    return FieldError(
        "training.global_batch_size",
        absl::StrCat(training.global_batch_size(), " windows make a plan of ",
                     most, "; use at most ",
                     micro_batches * training.micro_batch_size() * replicas));
  }
  if (size.validate > size.train) {
    const int64_t rest = instructions_max - size.train - size.fill;
    const int64_t micro_batches =
        std::max<int64_t>(1, rest / size.validation_micro_batch);
    return FieldError(
        "training.validation_sequences",
        absl::StrCat(training.validation_sequences(), " makes a plan of ", most,
                     "; use at most ",
                     micro_batches * training.micro_batch_size() * replicas));
  }
  const int64_t rest = instructions_max - size.validate - size.fill;
  const int64_t micro_batches_max =
      rest / std::max<int64_t>(1, size.micro_batch);
  if (micro_batches_max < 1) {
    const LayoutRow* const cut = LargestCut(job.parallelism());
    const std::string field =
        cut == nullptr ? "tensor" : std::string(cut->field);
    return FieldError(
        absl::StrCat("parallelism.", field),
        absl::StrCat(RanksOf(job.parallelism(), field),
                     " ranks exchange so often that one micro-batch makes a "
                     "plan of ",
                     most, "; use fewer of them, or another method"));
  }
  return FieldError(
      "training.micro_batch_size",
      absl::StrCat(
          training.micro_batch_size(), " makes ",
          draft.plan.derived().micro_batches(),
          " micro-batches a step, each of ", size.micro_batch,
          " instructions with units cut as they are: ", most,
          "; use a micro-batch of which a replica's step has at most ",
          micro_batches_max,
          ", a smaller training.global_batch_size, or a parallelism that "
          "exchanges less often"));
}

}  // namespace

PlanSize PlanSizeOf(const Draft& draft) {
  const UnitPasses passes(draft.plan);
  PlanSize size;
  for (int u = 0; u < draft.plan.units_size(); ++u) {
    size.validation_micro_batch +=
        InstructionsOf(passes, u, Instruction::FORWARD);
    for (const Instruction::Kind kind : kUnitPasses) {
      size.micro_batch += InstructionsOf(passes, u, kind);
    }
  }
  const Derived& derived = draft.plan.derived();
  const bool trains = !draft.plan.job().evaluate();
  // Replicas of a kind have programs in common.
  for (const std::vector<int>& places : ReplicaKinds(draft.plan)) {
    const int replica = places.empty() ? 0 : places.front();
    if (trains) {
      size.train +=
          size.micro_batch * ShareOf(derived, Program::TRAIN, replica).count;
    }
    size.validate += size.validation_micro_batch *
                     ShareOf(derived, Program::VALIDATE, replica).count;
  }
  for (const std::vector<ComputeStep>& steps : draft.compute_order) {
    for (const ComputeStep& step : steps) {
      if (step.ahead == 0 || !trains) continue;
      for (const int u : draft.stage_units.at(step.stage)) {
        size.fill +=
            step.ahead * InstructionsOf(passes, u, Instruction::FORWARD);
      }
    }
  }
  return size;
}

absl::Status CheckPlanSize(const Draft& draft, const PlanSize& size,
                           int64_t instructions_max) {
  return size.total() <= instructions_max
             ? absl::OkStatus()
             : TooLong(draft, size, instructions_max);
}

}  // namespace troupe
