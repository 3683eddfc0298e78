// A job, as long as the scheduler remembers it: what its user asked for, what
// clients see of it, and what is counted over all its attempts. What there is
// of it in some phases only lies in the data of that phase (phase_data.h), and
// what there is of the attempt in its Run (run.h). Only data; JobTable changes
// what is stored and shown.
#ifndef TROUPE_SCHEDULER_CLUSTER_JOB_H_
#define TROUPE_SCHEDULER_CLUSTER_JOB_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "scheduler/cluster/expert_loads.h"
#include "scheduler/cluster/phase.h"
#include "scheduler/cluster/phase_data.h"
#include "scheduler/cluster/run.h"
#include "scheduler/cluster/step_series.h"
#include "scheduler/cluster/worker_preference.h"

namespace troupe {

struct Job {
  JobId id;
  JobSpec spec;
  // With `elastic`, where its user left the parallelism open: the job as the
  // user wrote it. `spec` has what was chosen for its first workers.
  absl::optional<JobSpec> open;
  JobStatus status;
  int ranks_needed = 0;
  int32_t attempt = 0;
  bool cancelled = false;
  std::shared_ptr<const Plan> plan;  // without programs; null before the start
  // The plan that it ran when it was queued the last time, having trained:
  // plans after it keep its ways. Not stored.
  std::shared_ptr<const Plan> plan_before;
  // Of the traced ranks (step_gather.h); null before there is one, and of an
  // ended job that had to make room. JobTable alone changes them.
  std::shared_ptr<const Timeline> predicted;             // of the last attempt
  std::deque<std::shared_ptr<const Timeline>> measured;  // the newest, by step
  int64_t predicted_bytes = 0;                           // in memory
  int64_t measured_bytes = 0;                            // of all of them
  // It could not be saved to move: nothing is written for that sooner; and how
  // long after the next time. Until a checkpoint is there.
  static constexpr absl::Duration kFirstPause = absl::Minutes(1);
  absl::Time moves_after = absl::InfinitePast();
  absl::Duration move_pause = kFirstPause;
  // Since when it stands still, until it goes on: InfinitePast where it does
  // not, and where only the scheduler before this one may know.
  absl::Time stands_since = absl::InfinitePast();
  bool stands_longer = false;    // since before this scheduler's time
  std::deque<StepRecord> steps;  // ascending; the newest of them
  StepSeries series;             // of all of them
  ExpertLoads experts;           // since this scheduler began
  int64_t steps_since_thinned = 0;
  std::vector<JobEvent> events;
  std::string saves_in;  // its checkpoints' directory by name, or empty
  // What there is of its phase (phase_data.h); JobTable::Enter changes it.
  PhaseOfJob phase;
  // Until all its ranks have let go; JobTable gives and takes it.
  std::unique_ptr<Run> run;
  // Attempts in a row that ended after this step: by themselves, and because
  // they lost a worker.
  int64_t failed_at_step = -1;
  int failures_in_step = 0;
  int losses_in_step = 0;
  // Where starts failed for a cause of the worker's, since all ranks were last
  // ready: it is not begun there again. And how many.
  FailedStarts failed_on;
  int failed_starts = 0;
  // How long it waits for others, in its recovery or in the queue, before it is
  // begun there all the same.
  absl::Duration avoid_pause = kFirstPause;

  // Of the edge that it took last, until that is carried out.
  PhaseEffect due = PhaseEffect::kNone;
  // It has entered a phase by no edge of the table, or without the effect of
  // the edge before, and fails for that.
  std::string defect;

  // Null where it is not queued.
  phase::Waits* waits() { return PartOf<phase::Waits>(phase); }
  const phase::Waits* waits() const { return PartOf<phase::Waits>(phase); }
  // Its ranks save at the end of their step, for it to go on with other
  // workers.
  bool moves() const { return run != nullptr && run->saving() && !cancelled; }
  // It recovers, and is cancelled when what copies there are are saved.
  bool ends_once_saved() const {
    return !cancelled && status.intent() == INTENT_SAVE_CANCEL;
  }
  // That it begins with, at least.
  int least_ranks() const {
    return spec.has_elastic() ? std::max(1, spec.elastic().min_workers())
                              : ranks_needed;
  }
  bool ended() const { return IsEnded(status.state()); }
  static bool IsEnded(JobState state) {
    return state == SUCCEEDED || state == FAILED || state == CANCELLED;
  }
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_JOB_H_
