// All jobs that the scheduler remembers, and the one place where a job's
// status, steps and events change, so that every change is also persisted and
// told to those that watch, and what workers said of it is on one line and not
// too long. Which change is due is not decided here.
#ifndef TROUPE_SCHEDULER_CLUSTER_JOB_TABLE_H_
#define TROUPE_SCHEDULER_CLUSTER_JOB_TABLE_H_

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
#include "scheduler/cluster/intent.h"
#include "scheduler/cluster/job.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase.h"
#include "scheduler/cluster/phase_data.h"
#include "scheduler/cluster/run.h"

namespace troupe {

// A job as the store gives it back.
struct StoredJob {
  JobRow row;
  std::shared_ptr<const HandOut> hand_out;  // of its attempt; may be null
  std::vector<StepRecord> steps;
  std::vector<JobEvent> events;
};

// The client that made a job; empty where it is not known.
struct Submitter {
  std::string client;   // JobStatus.submitted_by
  std::string made_by;  // and its made_by
};

class JobTable {
 public:
  // `new_run_id` gives each submission its JobStatus.run_id.
  explicit JobTable(const Limits& limits, NewId new_run_id = RandomId)
      : limits_(limits),
        new_run_id_(std::move(new_run_id)),
        edges_taken_(PhaseEdges().size()) {}

  // QUEUED, under the next id.
  Job& Add(const JobSpec& spec, int ranks_needed, absl::Time now,
           Actions& actions, const Submitter& by = {},
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
  // By name; only the processes that write there see what another name leads to
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
  // it. To a phase of the job's run, or to one of a job without a run, whose
  // run, if it has one, is left with EndRun when the effect is carried out.
  // Where phase.h has no edge for that, the scheduler has a defect: the job
  // enters the phase all the same, so that phase and data agree, and is to fail
  // (Job::defect). The effect of the edge is due then (Job::due), and is to be
  // carried out before the job takes another one.
  void Enter(Job& job, PhaseEvent event, RunPhase phase);
  void Enter(Job& job, PhaseEvent event, PhaseOfJob phase);
  // The jobs that have entered a phase without an edge since the last call.
  std::vector<JobId> TakeDefective();
  bool any_defective() const { return !defective_.empty(); }
  // What is to become of the job, unless more than that is meant by now. A new
  // attempt begins with the intent to run. REQUIRES: it has a run.
  void Raise(Job& job, RunIntent intent);
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
  // Timelines of a job have `bytes` bytes now, and had what was `counted`; the
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
