// Steps that have run and whose scalars are not summed over the ranks yet. In
// most plans that is none: a step ends with the sum. Where a pipeline goes from
// step to step without a pause, the sum of a step is known some programs later
// (Derived.report_lag), and what the step was is kept here until then.
//
//   pending.Add({.finished = {.context = context, .seconds = 0.4}, ...});
//   ... the scalars of step s have become known ...
//   if (absl::optional<PendingReport> report = pending.Take(s)) { ... }
#ifndef TROUPE_WORKER_ENGINE_PENDING_REPORTS_H_
#define TROUPE_WORKER_ENGINE_PENDING_REPORTS_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/types/optional.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "worker/engine/step_record.h"

namespace troupe {

// All of a step's report but its scalars.
struct PendingReport {
  FinishedStep finished;
  int64_t memory_bytes = 0;
  double checkpoint_stall_seconds = 0;
  std::vector<TierTraffic> tiers;  // where anything moves between them
  absl::optional<double> validation_loss;
  absl::optional<TextSample> sample;
  absl::optional<RankTimeline> timeline;  // where the step is traced

  // Sets in the step's record what is not of its scalars.
  void FillIn(StepRecord& record) const;
};

class PendingReports {
 public:
  // REQUIRES a later step than all before.
  void Add(PendingReport report);
  // Gives the step's report up; nothing where there is none, because the step
  // was not one of this run or is reported already.
  absl::optional<PendingReport> Take(int64_t step);

 private:
  std::deque<PendingReport> reports_;  // by step, ascending
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_PENDING_REPORTS_H_
