#include "worker/engine/step_pipeline.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "proto/base/status.h"
#include "proto/plan/islands.h"
#include "proto/plan/sums.h"
#include "proto/plan/tier_traffic.h"
#include "worker/rank/resident_memory.h"

namespace troupe {

StepPipeline::StepPipeline(const StepPipelineOptions& options, RankState& state,
                           const Clock& clock)
    : options_(options),
      programs_(options_.programs),
      state_(state),
      plan_(*state.plan),
      clock_(clock),
      stop_(programs_.report_lag + (options_.reads_late ? 1 : 0)) {}

StepPipeline::~StepPipeline() = default;

absl::StatusOr<std::unique_ptr<StepPipeline>> StepPipeline::Create(
    const StepPipelineOptions& options, Executor& executor, RankState& state,
    const Clock& clock) {
  auto steps = absl::WrapUnique(new StepPipeline(options, state, clock));
  ASSIGN_OR_RETURN(steps->runs_,
                   ProgramRuns::Create(executor, state, options.on_failure));
  return steps;
}

absl::Status StepPipeline::Start(const StepContext& context,
                                 const StartOptions& options) {
  StepUnderWay step = {
      .report = {.finished = {.context = context},
                 .checkpoint_stall_seconds = options.checkpoint_stall_seconds},
      .traced = options.traced,
      .begin_ns = clock_.MonotonicNanos()};
  // Each step reports how long moves between tiers took.
  if (step.traced || MovesBetweenTiers(*programs_.step)) {
    step.report.timeline.emplace().set_rank(state_.rank());
  }
  under_way_.push_back(std::move(step));
  absl::optional<RankTimeline>& timeline = under_way_.back().report.timeline;
  StepContext at_start = context;
  at_start.summed_through = summed_through_;
  const absl::Status started = runs_->Start(
      *programs_.step, at_start, timeline.has_value() ? &*timeline : nullptr);
  if (!started.ok()) under_way_.pop_back();
  return started;
}

absl::StatusOr<PendingReport> StepPipeline::Await() {
  const absl::StatusOr<ProgramRuns::Ended> ended = runs_->Await();
  StepUnderWay step = std::move(under_way_.front());
  under_way_.pop_front();
  RETURN_IF_ERROR(ended.status());
  PendingReport& report = step.report;
  FinishedStep& finished = report.finished;
  finished.scalars = ended->scalars;
  // The device takes a step up when it has done the one before.
  finished.seconds =
      (ended->ended_ns - std::max(step.begin_ns, ended_ns_)) * 1e-9;
  ended_ns_ = ended->ended_ns;
  report.memory_bytes = ResidentMemoryBytes();
  // Where it is scaled, no step is summed or read late.
  finished.loss_scale = state_.loss_scale.state();
  state_.loss_scale.Update(SumNamed(plan_, finished.scalars, kSquaredNormSum));
  if (MovesBetweenTiers(*programs_.step)) {
    report.tiers = TrafficOf(*programs_.step, plan_.lanes(), *report.timeline);
    if (!step.traced) report.timeline.reset();
  }
  StopFlags flags = FlagsIn(finished.scalars);
  if (!programs_.agrees_on_stop) {
    flags.stop += finished.context.stop;
    flags.save += finished.context.save;
  }
  Heed(finished.context.step - programs_.report_lag, flags);
  return std::move(step.report);
}

absl::StatusOr<Scalars> StepPipeline::Sum(const PendingReport& report,
                                          bool all_known) {
  const Scalars& scalars = report.finished.scalars;
  const int64_t step = report.finished.context.step;
  if (programs_.report_lag == 0) return scalars;
  RETURN_IF_ERROR(ReportStep(step - programs_.report_lag, scalars));
  if (!all_known) return scalars;
  return SumLateSteps(step);
}

absl::Status StepPipeline::Report(PendingReport report, const Scalars& scalars,
                                  bool all_known) {
  const int64_t step = report.finished.context.step;
  pending_.Add(std::move(report));
  if (programs_.report_lag > 0 && !all_known) return absl::OkStatus();
  return ReportStep(step, scalars);
}

StopFlags StepPipeline::FlagsIn(const Scalars& scalars) const {
  return {.stop = SumNamed(plan_, scalars, kStopSum),
          .save = SumNamed(plan_, scalars, kSaveSum)};
}

void StepPipeline::Heed(int64_t step, const StopFlags& flags) {
  if (step <= summed_through_) return;  // the sum was left out
  summed_through_ = step;
  if (IslandsAgreeIn(*state_.plan, step)) stop_.Heed(step, flags);
}

absl::StatusOr<Scalars> StepPipeline::SumLateSteps(int64_t done) {
  Scalars scalars;
  for (int64_t later = 1; later <= programs_.report_lag; ++later) {
    const StepContext context = {.step = done + later};
    const int64_t step = context.step - programs_.report_lag;
    ASSIGN_OR_RETURN(scalars, Run(*programs_.report, context));
    Heed(step, FlagsIn(scalars));
    if (step < done) RETURN_IF_ERROR(ReportStep(step, scalars));
  }
  return scalars;
}

absl::Status StepPipeline::ReportStep(int64_t step, const Scalars& scalars) {
  absl::optional<PendingReport> report = pending_.Take(step);
  if (!report.has_value()) return absl::OkStatus();
  report->finished.scalars = scalars;
  StepRecord record = MakeStepRecord(plan_, report->finished);
  report->FillIn(record);
  absl::Status finite = plan_.job().evaluate()
                            ? evaluated_.Add(plan_, scalars, record)
                            : CheckFinite(record, state_.loss_scale);
  if (programs_.report_lag > 0) {
    finite = Annotate(finite, absl::StrCat("of step ", step));
  }
  RETURN_IF_ERROR(finite);
  return options_.report(
      record, scalars,
      report->timeline.has_value() ? &*report->timeline : nullptr);
}

absl::StatusOr<Scalars> StepPipeline::Run(const Program& program,
                                          StepContext context) {
  context.summed_through = summed_through_;
  return runs_->Run(program, context, nullptr);
}

}  // namespace troupe
