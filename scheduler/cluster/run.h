// One attempt to run a job: who fills its ranks, how far each has come, and
// what went wrong first. Only data and its arithmetic; RunControl decides with
// it.
//
// A failure is seldom reported first by the one at fault: when a worker dies,
// its peers' collectives fail before its connection is seen to break. So each
// cause has a Blame, and a better one replaces the cause that is there.
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
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/rank_seats.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/rendezvous.h"
#include "scheduler/cluster/step_deadline.h"
#include "scheduler/cluster/step_gather.h"
#include "scheduler/cluster/who_waits.h"

namespace troupe {

// How well a cause explains a failure; higher replaces lower.
enum class Blame {
  kNone = 0,
  kMissingPeer,  // a rank waited in vain for another
  kHang,         // no rank reported progress
  kRank,         // a rank failed by itself
  kMachine,      // and the cause lies in its worker, not in the job
  kWorkerLost,   // a worker is gone
};
// Whether other workers may well do.
inline bool IsOfWorker(Blame blame) { return blame >= Blame::kMachine; }

inline constexpr int64_t kNeverWrong = std::numeric_limits<int64_t>::max();

// A step that was said to be late, until it goes on.
struct LateStep {
  int64_t step = 0;               // 0: none
  absl::Duration time;            // that it has taken so far
  std::vector<Culprit> culprits;  // as they were said
  absl::Time said = absl::InfinitePast();
  absl::Time looked = absl::InfinitePast();
};

// The phases of a run (phase.h), each with what is there in that phase only.
namespace phase {

struct Storing {};
struct Starting {};
struct Training {};
struct Stopping {};
struct LetGo {};
struct AwaitPlaces {
  // A worker whose machine failed keeps what no other has, which a full disk
  // did not take: nobody takes a place until it does.
  bool for_disk = false;
};
struct Adopting {};

// Copies of states that are being written as a checkpoint (run_elastic.cc).
struct SavingCopies {
  enum Stage {
    kWriting,
    kCommitting,  // all are written, and one of them commits
    kStoring,     // it has, and that is to be stored
    kRefused,     // which the store could not, and is asked again
  };
  Stage stage = kWriting;
  std::string token;  // of its requests
  KeptState state;
  std::vector<Handover> holders;  // by rank, from whom its state is saved
  absl::Time since;
  std::set<int> awaited;  // ranks whose workers have not answered
  std::vector<ShardRecord> shards;
};

}  // namespace phase

using RunPhase = std::variant<phase::Storing, phase::Starting, phase::Training,
                              phase::Stopping, phase::LetGo, phase::AwaitPlaces,
                              phase::SavingCopies, phase::Adopting>;

JobPhase KindOf(const RunPhase& phase);

// Whether the ranks save at the end of their step, now that they stop.
enum class SaveAtStop {
  kNotAsked,
  kAsked,
  kSpoilt,     // they were asked, and a rank was lost or failed since
  kUnwritten,  // they were, and a rank could not write
};

struct Run {
  Run(int ranks, const Plan& plan, const Limits& limits);

  int32_t attempt = 0;
  RunPhase phase;  // JobTable::Enter changes it
  // What the ranks get once it is stored that the attempt begins. Null where
  // the scheduler before this one handed it out, and that is not known here.
  std::shared_ptr<const HandOut> handed;
  // It was stopped before all ranks had heard of it, so that it has done no
  // step.
  bool unheard = false;
  // Begun where its job's start had failed, after a long wait for other
  // workers: where it fails there again, that says nothing new and costs
  // nothing.
  bool tries_again = false;
  // When all of its ranks had, or those of the one that it follows.
  absl::Time let_go = absl::InfinitePast();
  // After which step one that follows another goes on; -1 where copies do not
  // say that.
  int64_t resumes_at = -1;
  int64_t done_before = 0;  // steps of its job, as it began
  std::string begins;       // in a sentence
  int copies_asked = 0;     // to be saved, so often
  // Of the last requests: they are answered, late or not, with a checkpoint of
  // this run. Empty: that is known, or there were none.
  std::string copies_token;
  int64_t copies_step = 0;  // of what those requests ask for
  // Copies of this step cannot be saved, and no disk is in the way: they are
  // not asked for again. -1: none are known.
  int64_t unsavable_step = -1;
  int store_question = 0;  // the last one that the store was asked
  absl::Time store_asked = absl::InfiniteFuture();  // again, when it failed
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
  // before them: they are not known to the job yet (run_adopt.cc).
  std::map<int64_t, CheckpointRecord> early_commits;
  std::vector<RankReport> reports;    // by rank; from heartbeats
  std::vector<std::string> warnings;  // of ranks that are ready, each once
  int notices = 0;                    // of all ranks, that became events
  StepDeadline deadline;
  // When a rank was last seen in something else than a step: a validation, a
  // checkpoint, between two steps. Only what comes after may be late.
  absl::Time outside_step;
  LateStep late;
  int late_events = 0;

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
  absl::Time stopping_since = absl::InfiniteFuture();  // if it is
  SaveAtStop save = SaveAtStop::kNotAsked;
  std::string intent_why;  // "cancelled by its user"
  Blame blame = Blame::kNone;
  std::string cause;

  template <typename Phase>
  bool is() const {
    return std::holds_alternative<Phase>(phase);
  }
  // Null in other phases.
  phase::SavingCopies* saving_copies() {
    return std::get_if<phase::SavingCopies>(&phase);
  }
  phase::AwaitPlaces* await_places() {
    return std::get_if<phase::AwaitPlaces>(&phase);
  }
  const phase::AwaitPlaces* await_places() const {
    return std::get_if<phase::AwaitPlaces>(&phase);
  }
  const phase::SavingCopies* saving_copies() const {
    return std::get_if<phase::SavingCopies>(&phase);
  }
  bool saving() const { return save == SaveAtStop::kAsked; }
  // Its ranks were told to stop; they may have let go since.
  bool stopping() const;
  // All of them have, and the job stays in its places until it goes on.
  bool between_attempts() const {
    return is<phase::AwaitPlaces>() || is<phase::SavingCopies>();
  }
  // It says nothing of its job: nobody has heard of it, or it failed where
  // starts had failed before.
  bool says_nothing() const {
    return unheard || (tries_again && !ranks.all_ready());
  }
  // Whether the attempt after it is a restart: what ended this one is a failure
  // of it, and not that its job moved, be it with a disk in the way.
  bool CostsRestart() const {
    return blame != Blame::kNone && !says_nothing() &&
           save != SaveAtStop::kUnwritten;
  }
  // Goes on from another one, whose workers may keep copies.
  bool follows() const { return let_go != absl::InfinitePast(); }
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
  // Whether this cause explains better than the one that is there; then it is
  // kept.
  bool Explain(Blame blame_now, std::string cause_now);
};

// The longest that a healthy job goes without a sign of progress: hang_steps
// predicted steps, each with a validation, and hang_min at least.
absl::Duration HangMax(const Plan& plan, const Limits& limits);

// The step of the newest; -1: there is none.
int64_t NewestCheckpoint(const JobStatus& status);

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
