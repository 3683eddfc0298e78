// One attempt to run a job: which workers fill its ranks, how far each has
// come, and what went wrong first. Only data and its arithmetic; RunControl
// decides with it.
//
// What is there in some phases only is in phase_data.h: of a run that was
// stopped, why. A failure is seldom reported first by the one at fault: when a
// worker dies, its peers' collectives fail before its connection is seen to
// break. So each cause has a Blame, and a better one replaces the cause that is
// there.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/base/ids.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/checkpoint_gather.h"
#include "scheduler/cluster/intent.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/phase_data.h"
#include "scheduler/cluster/rank_seats.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/rendezvous.h"
#include "scheduler/cluster/step_deadline.h"
#include "scheduler/cluster/step_gather.h"

namespace troupe {

inline constexpr int64_t kNeverWrong = std::numeric_limits<int64_t>::max();

// Of an attempt that goes on from another one, whose workers may keep copies.
struct FollowsAttempt {
  absl::Time let_go;        // when all ranks of that one had
  int64_t resumes_at = -1;  // after which step; -1 where copies do not say that
};

struct Run {
  Run(int ranks, const Plan& plan, const Limits& limits);

  int32_t attempt = 0;
  RunPhase phase;  // JobTable::Enter changes it
  // What the ranks get once it is stored that the attempt begins. Null where
  // the scheduler before this one handed it out, and that is not known here.
  std::shared_ptr<const HandOut> handed;
  // Begun where its job's start had failed, after a long wait for other
  // workers: where it fails there again, that says nothing new and costs
  // nothing.
  bool tries_again = false;
  absl::optional<FollowsAttempt> follows;
  int64_t done_before = 0;  // steps of its job, as it began
  int store_questions = 0;  // that the store was asked
  RankSeats ranks;
  Rendezvous rendezvous;
  StepGather steps;
  // Ranks of this attempt differed in this step: what they keep or write of it
  // and of later ones is not gone on from.
  int64_t wrong_since = kNeverWrong;
  // The same of the attempts before it. A rank that is ready has dropped what
  // it kept of them after the step that it goes on from
  // (worker/engine/recover).
  int64_t wrong_before = kNeverWrong;
  // Those that computed wrongly, in this attempt or one before it, by name, and
  // that no person has put back since.
  std::set<std::string> wrong_workers;
  CheckpointGather checkpoints;
  // By step. Rank 0 has reported again, after a restart of the scheduler, that
  // it has committed these, and other ranks have not reported again all steps
  // before them: they are not known to the job yet (run_steps.h).
  std::map<int64_t, CheckpointRecord> early_commits;
  std::vector<RankReport> reports;  // by rank; from heartbeats
  int notices = 0;                  // of all ranks, that became events
  StepDeadline deadline;
  // When a rank was last seen in something else than a step: a validation, a
  // checkpoint, between two steps. Only what comes after may be late.
  absl::Time outside_step;

  // Where the scheduler was started again while the job ran: when that was.
  absl::Time restored = absl::InfinitePast();
  // What its ranks were told to be stored of their reports, and when.
  int64_t stored_step = -1;
  bool stored_ready = false;
  absl::Time stored_said = absl::InfinitePast();

  absl::Time started;
  absl::Time disk_progress = absl::InfinitePast();  // bytes of any rank
  absl::Time progress;                              // of any rank
  absl::Duration hang_max;  // the longest plausible wait for progress
  RunIntent intent;         // JobTable::Raise changes it

  template <typename Phase>
  bool is() const {
    return std::holds_alternative<Phase>(phase);
  }
  // Null in other phases.
  template <typename Phase>
  Phase* in() {
    return std::get_if<Phase>(&phase);
  }
  template <typename Phase>
  const Phase* in() const {
    return std::get_if<Phase>(&phase);
  }
  // Null before it is stopped.
  phase::Stopped* stopped() { return PartOf<phase::Stopped>(phase); }
  const phase::Stopped* stopped() const {
    return PartOf<phase::Stopped>(phase);
  }
  // Null where ranks have not let go, or the job has left its places.
  phase::Between* between() { return PartOf<phase::Between>(phase); }
  const phase::Between* between() const {
    return PartOf<phase::Between>(phase);
  }
  bool saving() const;
  // Its ranks were told to stop; they may have let go since.
  bool stopping() const { return stopped() != nullptr; }
  // All of them have, and the job stays in its places until it goes on.
  bool between_attempts() const { return between() != nullptr; }
  // Nobody has heard of the attempt, as far as it was stopped or is about to
  // be: phase::Stopped.
  bool unheard() const;
  // It says nothing of its job: nobody has heard of it, or it failed where
  // starts had failed before.
  bool says_nothing() const {
    return unheard() || (tries_again && !ranks.all_ready());
  }
  // For which its ranks were told to stop; kNone where nothing failed.
  Blame blame() const;
  // Whether the attempt after it is a restart: what ended this one is a failure
  // of it, and not that its job moved, be it with a disk in the way.
  bool CostsRestart() const;
  // Whether copies cannot be saved without the worker of this rank.
  bool SavesCopiesWith(int rank) const;
  // What the seat's worker keeps, as far as it may be gone on from.
  std::vector<KeptCopy> SoundCopies(const RankSeat& seat) const;
  // The wrong_before of the attempt that follows.
  int64_t WrongBeforeNext() const;
  // A sign of the rank that it gets on.
  void GotOn(int rank, absl::Time now);
  // Time in which no rank could be heard: no wait counts it.
  void Forgive(absl::Duration time, absl::Time now);
};

// The longest that a healthy job goes without a sign of progress: hang_steps
// predicted steps, each with a validation, and hang_min at least.
absl::Duration HangMax(const Plan& plan, const Limits& limits);

// Deadline of a collective: hang_steps predicted steps, and collective_min at
// least.
absl::Duration CollectiveMax(const Plan& plan, const Limits& limits);

// The step of the newest; -1: there is none.
int64_t NewestCheckpoint(const JobStatus& status);

// The directory of the newest checkpoint of what the job has trained: its own,
// or, before it has one, that from which it began. Empty: there is none.
std::string NewestCheckpointPath(const JobStatus& status);

// Where what it has done lies: "; saved in /c/step-17", or "; the newest
// checkpoint is of step 15: /c/step-15", or nothing.
std::string NewestSaved(const JobStatus& status);
// The same of one that was to be saved. `all_there_was`: the newest checkpoint
// has all that could be.
std::string WhereSaved(const JobStatus& status, bool all_there_was = false);

// Where a job is: "its start", "step 17", or, with all steps done, "its end".
std::string StepName(JobState state, int64_t steps_done,
                     const TrainingSpec& training);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_H_
