// The steps of a run, from their start to their report. On an asynchronous
// device two steps may be under way: the next one is started while the device
// still has this one, and what this one has left is read when it is there
// (docs/gpu.md, "Between two steps"). Where steps are summed late
// (Derived.report_lag), a step that is done is reported some programs later.
//
//   ASSIGN_OR_RETURN(auto steps, StepPipeline::Create(options, executor, ...));
//   steps->BeginAfter(start.step);
//   RETURN_IF_ERROR(steps->Start(context, start_options));
//   ASSIGN_OR_RETURN(PendingReport report, steps->Await());     // the oldest
//   ASSIGN_OR_RETURN(Scalars scalars, steps->Sum(report, all_known));
//   RETURN_IF_ERROR(steps->Report(std::move(report), scalars, all_known));
//
// Belongs to one thread.
#ifndef TROUPE_WORKER_ENGINE_STEP_PIPELINE_H_
#define TROUPE_WORKER_ENGINE_STEP_PIPELINE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/base/clock.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "worker/engine/agreed_stop.h"
#include "worker/engine/evaluated_loss.h"
#include "worker/engine/executor.h"
#include "worker/engine/pending_reports.h"
#include "worker/engine/program_runs.h"
#include "worker/engine/rank_programs.h"
#include "worker/engine/step_record.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct StepPipelineOptions {
  RankPrograms programs;
  // Whether a step is started before the one before it is read: ranks stop a
  // step later then.
  bool reads_late = false;
  // At the first failure of a program; as the executor's.
  std::function<void(const absl::Status& why)> on_failure;
  // A step is done, and summed over all ranks; in the order of the steps.
  // `timeline` is null where the step is not traced.
  std::function<absl::Status(const StepRecord& record,
                             absl::Span<const double> sums,
                             const RankTimeline* timeline)>
      report;
};

class StepPipeline {
 public:
  // Borrows executor, state and clock. Errors of ProgramRuns::Create.
  static absl::StatusOr<std::unique_ptr<StepPipeline>> Create(
      const StepPipelineOptions& options, Executor& executor, RankState& state,
      const Clock& clock);
  // Waits for what is under way.
  ~StepPipeline();
  StepPipeline(const StepPipeline&) = delete;
  StepPipeline& operator=(const StepPipeline&) = delete;

  // Before all else: the last step that was done before this run.
  void BeginAfter(int64_t step) { summed_through_ = step; }

  // Starts the step's program. REQUIRES at most one under way.
  struct StartOptions {
    bool traced = false;
    double checkpoint_stall_seconds = 0;  // since the last step
  };
  absl::Status Start(const StepContext& context, const StartOptions& options);

  // Waits for the oldest step under way. What it leaves is its own, of this
  // rank or of all, as the plan sums it.
  absl::StatusOr<PendingReport> Await();
  bool under_way() const { return !under_way_.empty(); }

  // The scalars of the step that was awaited, as far as they are summed, and
  // reports the step of which they were summed in its program. `all_known`:
  // sums all steps up to this one, and reports all but this one.
  absl::StatusOr<Scalars> Sum(const PendingReport& report, bool all_known);
  // Reports the step, or keeps the report until the step is summed.
  absl::Status Report(PendingReport report, const Scalars& scalars,
                      bool all_known);

  // Runs another program of the plan. REQUIRES that nothing is under way.
  absl::StatusOr<Scalars> Run(const Program& program, StepContext context);

  // After which step all ranks stop.
  const AgreedStop& stop() const { return stop_; }

 private:
  // A step whose program was started, and not awaited.
  struct StepUnderWay {
    PendingReport report;
    bool traced = false;
    int64_t begin_ns = 0;
  };

  StepPipeline(const StepPipelineOptions& options, RankState& state,
               const Clock& clock);

  StopFlags FlagsIn(const Scalars& scalars) const;
  void Heed(int64_t step, const StopFlags& flags);
  absl::StatusOr<Scalars> SumLateSteps(int64_t done);
  absl::Status ReportStep(int64_t step, const Scalars& scalars);

  const StepPipelineOptions options_;
  const RankPrograms& programs_;  // of the options
  RankState& state_;
  const Plan& plan_;  // of the state
  const Clock& clock_;
  std::deque<StepUnderWay> under_way_;  // the oldest first, two at most
  std::unique_ptr<ProgramRuns> runs_;   // writes timelines of the above
  AgreedStop stop_;
  int64_t ended_ns_ = 0;        // the last step that was awaited
  int64_t summed_through_ = 0;  // the last step summed over the ranks
  PendingReports pending_;
  EvaluatedLoss evaluated_;  // of a job that evaluates
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_STEP_PIPELINE_H_
