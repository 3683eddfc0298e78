// What is there of a job in some of its phases only (phase.h): each phase has
// its own data, so that nothing of another one can be read or left behind. What
// a phase takes over from the one before it says in its constructor.
//
//   Waits                         of a job in the queue: what it waits for
//     Queued
//     Planned                     what the planner was asked
//   of a job that has a run, InRun; and of the run:
//     Storing, Starting           how the attempt begins
//     Widens                      whether it is to go on with more workers
//       Adopting                  how the attempt begins
//       Training                  the step that is late
//     Stopped                     why, and how: of all phases from then on
//       Stopping, LetGo
//       Between                   what is asked of copies, in the job's places
//         AwaitPlaces, SavingCopies
//   Ended
//
// What is there in all phases is in Job (job.h), in all of a run in Run
// (run.h).
#ifndef TROUPE_SCHEDULER_CLUSTER_PHASE_DATA_H_
#define TROUPE_SCHEDULER_CLUSTER_PHASE_DATA_H_

#include <cstdint>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
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

// A step that was said to be late, until it goes on.
struct LateStep {
  int64_t step = 0;               // 0: none
  absl::Duration time;            // that it has taken so far
  std::vector<Culprit> culprits;  // as they were said
  absl::Time said = absl::InfinitePast();
  absl::Time looked = absl::InfinitePast();
};

// What the store was asked, and has not answered.
struct StoreQuestion {
  int number = 0;                             // of the run's; 0: none
  absl::Time again = absl::InfiniteFuture();  // it could not: asked again
};

// Whether the ranks save at the end of their step, now that they stop.
enum class SaveAtStop {
  kNotAsked,
  kAsked,
  kSpoilt,     // they were asked, and a rank was lost or failed since
  kUnwritten,  // they were, and a rank could not write
};

namespace phase {

// Of a job in the queue.
struct Waits {
  // Since when, where it ran before.
  absl::Time since = absl::InfinitePast();
  // It was saved to go on with others, and does so at once with as many workers
  // as there are.
  bool moved = false;
  // It is begun next where its start failed.
  bool tries_again = false;
  // While its planning takes long, those behind it may start first; but not in
  // a second one, for want of the workers that the first one was for.
  bool may_be_overtaken = true;
  // WorkerTable::changes() when the idle workers were found too small, and what
  // it waits for because of that.
  int64_t too_small_at = -1;
  std::string too_small_why;
  // The same when not one of those that are alive would do, idle or busy.
  int64_t fits_nobody_at = -1;
  // With `elastic`: all its ranks were too many for the idle ones; with fewer
  // it begins when no worker has come or gone for a while.
  bool narrower_when_calm = false;
  // Its plan again, where its user left that open: not once that took too long.
  bool chooses = true;
};

struct Queued : Waits {
  explicit Queued(Waits waits = {}) : Waits(std::move(waits)) {}
};

struct Planned : Waits {
  Planned(Waits waits, int64_t number, absl::Time now)
      : Waits(std::move(waits)), compilation(number), asked_at(now) {}

  int64_t compilation;  // the number of the one that is under way
  absl::Time asked_at;
};

struct InRun {};

struct Ended {};

struct Storing {
  std::string begins;  // the attempt, in a sentence: one that follows another
  StoreQuestion asked;
};

struct Starting {
  std::string begins;                 // as above
  std::vector<std::string> warnings;  // of ranks that are ready, each once
};

// Of a run with `elastic` that has fewer workers than its job needs ranks.
struct Widens {
  int64_t compilation = 0;  // for more workers, under way; 0: none is
  // WorkerTable::changes() when no wider plan was found.
  int64_t not_wider_at = -1;
};

struct Adopting : Widens {
  std::string begins;                 // as of Starting
  std::vector<std::string> warnings;  // the same
  bool unheard = false;               // Stopped's
};

struct Training : Widens {
  explicit Training(Widens widens = {}) : Widens(widens) {}

  LateStep late;
  int late_events = 0;
};

// Of an attempt that is over, or is to be.
struct Stopped {
  // When its ranks were told to stop; the future where they ended by
  // themselves.
  absl::Time since = absl::InfiniteFuture();
  // Before all ranks had heard of it, so that it has done no step.
  bool unheard = false;
  // It was found that another attempt follows.
  bool goes_on = false;
  SaveAtStop save = SaveAtStop::kNotAsked;
  Blame blame = Blame::kNone;
  std::string cause;

  // Whether this cause explains better than the one that is there; then it is
  // kept.
  bool Explain(Blame blame_now, std::string cause_now) {
    if (blame_now <= blame) return false;
    blame = blame_now;
    cause = std::move(cause_now);
    return true;
  }
};

struct Stopping : Stopped {
  explicit Stopping(Stopped stopped = {}) : Stopped(std::move(stopped)) {}
};

struct LetGo : Stopped {
  explicit LetGo(Stopped stopped = {}) : Stopped(std::move(stopped)) {}
};

// All ranks have let go, and the job stays in its places until it goes on.
struct Between : Stopped {
  Between() = default;
  Between(Stopped stopped, absl::Time let_go_at)
      : Stopped(std::move(stopped)), let_go(let_go_at) {}

  absl::Time let_go = absl::InfinitePast();  // since when
  int copies_asked = 0;                      // to be saved, so often
  // Of the last requests: they are answered, late or not, with a checkpoint of
  // this run. Empty: that is known, or there were none.
  std::string copies_token;
  int64_t copies_step = 0;  // of what those requests ask for
  // Copies of this step cannot be saved, and no disk is in the way: they are
  // not asked for again. -1: none are known.
  int64_t unsavable_step = -1;
};

struct AwaitPlaces : Between {
  explicit AwaitPlaces(Between between = {}) : Between(std::move(between)) {}

  // A worker whose machine failed keeps what no other has, which a full disk
  // did not take: nobody takes a place until it does.
  bool for_disk = false;
};

// Copies of states that are being written as a checkpoint (run_copies.h).
struct SavingCopies : Between {
  explicit SavingCopies(Between between = {}) : Between(std::move(between)) {}

  enum Stage {
    kWriting,
    kCommitting,  // all are written, and one of them commits
    kStoring,     // it has, and that is to be stored
    kRefused,     // which the store could not, and is asked again
  };
  Stage stage = kWriting;
  std::string token;  // of its requests
  KeptState state;
  std::vector<Handover> holders;  // by rank, the one that saves its state
  absl::Time since;
  std::set<int> awaited;  // ranks whose workers have not answered
  std::vector<ShardRecord> shards;
  StoreQuestion asked;  // kStoring, kRefused
};

}  // namespace phase

// Of a job; which of a run's phases it is in, InRun leaves to the run.
using PhaseOfJob =
    std::variant<phase::InRun, phase::Queued, phase::Planned, phase::Ended>;

using RunPhase = std::variant<phase::Storing, phase::Starting, phase::Training,
                              phase::Stopping, phase::LetGo, phase::AwaitPlaces,
                              phase::SavingCopies, phase::Adopting>;

JobPhase KindOf(const RunPhase& phase);
// REQUIRES: it is not InRun.
JobPhase KindOf(const PhaseOfJob& phase);

// The part that several phases have; null in the others.
template <typename Part, typename... Phases>
Part* PartOf(std::variant<Phases...>& phase) {
  return std::visit(
      [](auto& data) -> Part* {
        if constexpr (std::is_base_of_v<Part, std::decay_t<decltype(data)>>) {
          return &data;
        } else {
          return nullptr;
        }
      },
      phase);
}
template <typename Part, typename... Phases>
const Part* PartOf(const std::variant<Phases...>& phase) {
  return PartOf<Part>(const_cast<std::variant<Phases...>&>(phase));
}

// How the attempt begins, in a sentence; empty in phases that do not say.
const std::string& BeginsOf(const RunPhase& phase);
// Where warnings of ranks that are ready are gathered; null in other phases.
std::vector<std::string>* WarningsOf(RunPhase& phase);
// What the store was asked; null in phases that do not ask it.
StoreQuestion* AskedOf(RunPhase& phase);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_PHASE_DATA_H_
