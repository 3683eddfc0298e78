// All jobs that the scheduler remembers, and the one place where a job's
// status, steps and events change, so that every change is also persisted and
// told to those who watch, and what workers said of it is on one line and not
// too long. Which change is due is not decided here.
#ifndef TROUPE_SCHEDULER_CLUSTER_JOB_TABLE_H_
#define TROUPE_SCHEDULER_CLUSTER_JOB_TABLE_H_

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/base/random_id.h"
#include "proto/scheduler.pb.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/expert_loads.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase.h"
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
  // Queued after it has trained: the last plan that it ran. Not stored.
  std::shared_ptr<const Plan> plan_before;
  // Of the traced ranks (step_gather.h); null before there is one, and of an
  // ended job that had to make room. JobTable alone changes them.
  std::shared_ptr<const Timeline> predicted;             // of the last attempt
  std::deque<std::shared_ptr<const Timeline>> measured;  // the newest, by step
  int64_t predicted_bytes = 0;                           // in memory
  int64_t measured_bytes = 0;                            // of all of them
  // Queued, or to run on more workers: the number of the compilation that is
  // under way, or 0.
  int64_t compilation = 0;
  absl::Time compilation_asked_at;  // of the last one of a queued job
  // While that takes long, those behind it may start first; but not in a second
  // one, for want of the workers that the first one was for.
  bool may_be_overtaken = true;
  // Queued: WorkerTable::changes() when the idle workers were found too small,
  // and what it waits for because of that.
  int64_t too_small_at = -1;
  std::string too_small_why;
  // The same when not one of those that are alive would do, idle or busy.
  int64_t fits_nobody_at = -1;
  // With `elastic`: all its ranks were too many for the idle ones; with fewer
  // it begins when no worker has come or gone for a while.
  bool narrower_when_calm = false;
  // Running with `elastic` on fewer than it needs: the same when no wider plan
  // was found.
  int64_t not_wider_at = -1;
  // It could not be saved to move: nothing is written for that sooner; and how
  // long after the next time. Until a checkpoint is there.
  static constexpr absl::Duration kFirstPause = absl::Minutes(1);
  absl::Time moves_after = absl::InfinitePast();
  absl::Duration move_pause = kFirstPause;
  // It went on before, and does so at once with as many workers as there are.
  bool moved = false;
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
  // begun there all the same; since when it is in the queue, if it ran before;
  // and whether it is begun there next.
  absl::Duration avoid_pause = kFirstPause;
  absl::Time queued_since = absl::InfinitePast();
  bool tries_again = false;

  // Of the edge that it took last, until that is carried out.
  PhaseEffect due = PhaseEffect::kNone;
  // It has entered a phase by no edge of the table, or without the effect of
  // the edge before, and fails for that.
  std::string defect;

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

// A job as the store gives it back.
struct StoredJob {
  JobRow row;
  std::shared_ptr<const HandOut> hand_out;  // of its attempt; may be null
  std::vector<StepRecord> steps;
  std::vector<JobEvent> events;
};

class JobTable {
 public:
  // `new_run_id` gives each submission its JobStatus.run_id.
  explicit JobTable(const Limits& limits, NewId new_run_id = RandomId)
      : limits_(limits),
        new_run_id_(std::move(new_run_id)),
        edges_taken_(PhaseEdges().size()) {}

  // QUEUED, under the next id. `client`: who submitted it; empty: nobody knows.
  Job& Add(const JobSpec& spec, int ranks_needed, absl::Time now,
           Actions& actions, const std::string& client = "",
           absl::optional<JobSpec> open = absl::nullopt);

  // What was there before the scheduler started. A job that ran then has no run
  // yet: RunAdopt::Resume.
  void Restore(StoredJob stored, int ranks_needed, Actions& actions);

  Job* Find(JobId id);  // null: no such job
  const Job* Find(JobId id) const;
  const std::map<JobId, std::unique_ptr<Job>>& all() const { return jobs_; }
  // Those that are QUEUED, in the order of their submission.
  const std::set<JobId>& queue() const { return queue_; }
  int queued() const { return static_cast<int>(queue_.size()); }
  // Of those, the ones that this client submitted.
  int QueuedOf(const std::string& client) const;
  // Another job that holds the directory in which this one would save, from its
  // start to its end, queued or not: two that
  // wrote and pruned there would destroy each other's checkpoints. Null: none.
  // By name; what another name leads to only those see who write there
  // (storage/checkpoint/checkpoint_folder.h).
  const Job* SavesInPlaceOf(const Job& job) const;

  // Whether a job that has not ended saves where this one looks for what it
  // resumes. By name, as above.
  bool MayYetWrite(const JobSpec& spec) const;

  // The run is the job's, and the directory in which it saves; it begins in
  // this phase. REQUIRES: it has none; SavesInPlaceOf it is null.
  void BeginRun(Job& job, std::unique_ptr<Run> run, PhaseEvent event,
                RunPhase phase);
  // REQUIRES: it has one, which is the caller's now.
  std::unique_ptr<Run> EndRun(Job& job);

  // The one place where a job's phase changes; the next row that is saved has
  // it. To a phase of the job's run, or to one of a job without a run.
  // Where phase.h has no edge for that, the scheduler has a defect: the job
  // enters the phase all the same, so that phase and data agree, and is to fail
  // (Job::defect). The effect of the edge is due then (Job::due), and is to be
  // carried out before the job takes another one.
  void Enter(Job& job, PhaseEvent event, RunPhase phase);
  void Enter(Job& job, PhaseEvent event);
  // The jobs that have entered a phase without an edge since the last call.
  std::vector<JobId> TakeDefective();
  bool any_defective() const { return !defective_.empty(); }
  // What is to become of the job, and why, unless more than that is meant by
  // now. A new attempt begins with the intent to run. REQUIRES: it has a run.
  void Raise(Job& job, JobIntent intent, const std::string& why);
  // By the number of the edge, how often a job has taken it.
  const std::vector<int64_t>& edges_taken() const { return edges_taken_; }

  // The state, why, and an event that says so.
  void SetState(Job& job, JobState state, const std::string& reason,
                absl::Time now, Actions& actions);
  // Why a queued job waits, or a running one is late; no event. Nothing happens
  // if it says so already.
  void SetWaitReason(Job& job, const std::string& reason, Actions& actions);
  void AddEvent(Job& job, const std::string& text, absl::Time now,
                Actions& actions);
  void AddStep(Job& job, const StepRecord& step, Actions& actions);
  // Kept in memory only, those of ended jobs as long as there is room for them.
  void AddTrace(Job& job, Timeline measured);
  void SetPredicted(Job& job, std::shared_ptr<const Timeline> predicted);
  void AddCheckpoint(Job& job, const CheckpointRecord& checkpoint,
                     absl::Time now, Actions& actions);
  // After a change of what SetState does not know (plan, attempt, workers).
  void Save(const Job& job, Actions& actions);

  // What a watcher that has seen so much has not: at most kWatchStepsMax steps.
  static WatchJobResponse NewsSince(const Job& job, int64_t from_step,
                                    int64_t from_event);
  static constexpr int kWatchStepsMax = 1000;

 private:
  void TakeEdge(Job& job, PhaseEvent event, JobPhase to);
  void FindDefective(Job& job, const std::string& what);
  // Where the job has nothing more to do with it.
  void LeaveDirectory(const Job& job);
  // The one place where a status gets its state.
  void Become(Job& job, JobState state);
  // Makes room: of the oldest ended jobs, all or only the steps.
  void Forget(Actions& actions);
  // Timelines of a job have so many bytes now, and had what was `counted`; the
  // oldest ended jobs make room.
  void CountTimelines(int64_t bytes, int64_t& counted);
  void DropTimelines(Job& job);
  // Room for one more of the job's newest steps.
  void DropOldestStep(Job& job, Actions& actions);
  // Leaves few enough of the steps before this one in the store.
  ThinSteps Thinned(const Job& job, int64_t before) const;

  const Limits limits_;
  const NewId new_run_id_;
  int64_t next_id_ = 1;
  int64_t steps_kept_ = 0;
  int64_t timeline_bytes_ = 0;
  std::map<JobId, std::unique_ptr<Job>> jobs_;
  std::set<JobId> queue_;
  std::map<std::string, JobId> savers_;  // by directory
  std::vector<int64_t> edges_taken_;
  std::vector<JobId> defective_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_JOB_TABLE_H_
