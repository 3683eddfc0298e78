// Where a job is on its way, as one table: from each phase, which event leads
// to which phase, how firm its intent has to be for that, and what others are
// told or asked then. Every change of a phase goes through this table
// (JobTable::Enter), so that what it does not list cannot happen, and the
// effect of an edge is carried out in one place (PhaseEffects::Perform). The
// drawing in docs/recovery.md is made from it, and the simulated cluster counts
// which edges its seeds take.
//
//   Queued        waits for its turn, for workers, or for another job's end
//   Planned       is being compiled for the workers that are idle
//   Storing       has workers; that the attempt begins is being stored
//   Starting      its ranks have heard of the attempt, and not all are ready
//   Training      all ranks are ready
//   Stopping      its ranks were told to stop, with a checkpoint or without
//   LetGo         no worker runs a rank of it: what follows is decided at once
//   AwaitPlaces   waits for workers in the places of those that it lost
//   SavingCopies  what it keeps in memory becomes a checkpoint
//   Adopting      ran when the scheduler was restarted: waits for its workers
//   Ended         succeeded, failed or cancelled, and no worker is left to it
//
// A job that fails or succeeds says so in its state (JobState) while its phase
// is still Stopping: its workers are not free yet.
#ifndef TROUPE_SCHEDULER_CLUSTER_PHASE_H_
#define TROUPE_SCHEDULER_CLUSTER_PHASE_H_

#include <string>

#include "absl/types/span.h"
#include "proto/status.pb.h"

namespace troupe {

// What happens to a job that changes its phase.
enum class PhaseEvent {
  kSubmitted,
  kRestoredInQueue,   // the scheduler before this one left it queued,
  kRestoredEnded,     // or ended, or with an incomplete record,
  kRestoredRunning,   // or in an attempt that goes on,
  kRestoredStopping,  // or in one that was being stopped
  kPlanAsked,         // its turn has come
  kPlanAnswered,      // whatever the planner says
  kPlaced,            // a plan fits, and its workers are idle
  kStored,            // it is on the disk that the attempt begins
  kWithdrawn,         // it is not, or a worker was lost: nobody has heard of it
  kAllReady,          // the last rank is ready
  kBackInStart,       // no worker is awaited any more; some rank is not ready
  kBackInTraining,    // the same, and all were ready
  kStartCut,          // the scheduler was lost in the middle of the job's start
  kStopped,           // by a failure, a move, or a user
  kAllLetGo,          // the last rank has ended, or its worker is lost
  kGoesOn,            // with the workers that are left, and others
  kGoesOnAnew,        // planned anew: what its ranks were handed is lost, or
                      // its start failed for a cause of its workers
  kPlacesTaken,       // every place has a worker: the next attempt
  kCopiesAsked,       // the workers that keep copies are asked to save them
  kCopiesCommitted,   // they are a checkpoint; that is being stored
  kCopiesGivenUp,     // they could not be saved, or their keeper is lost
  kMoved,             // to the queue, to go on with other workers
  kFinished,          // it does not go on
};

// What others are told or asked when a job takes an edge.
enum class PhaseEffect {
  kNone,
  kStoreStart,       // the store is asked whether the attempt is stored
  kHandOut,          // the workers get the assignments of their ranks
  kStopRanks,        // the ranks are told to stop
  kForgetRanks,      // the workers end what they run, report nothing, are free
  kFreeWorkers,      // the workers drop the copies that they keep, and are free
  kSaveCopies,       // the workers are asked to write the copies that they keep
  kStoreCheckpoint,  // the store is asked whether the checkpoint is stored
};

// A job's intent is between `least` and `most` when it takes the edge.
struct PhaseEdge {
  JobPhase from = JOB_PHASE_UNSPECIFIED;  // unspecified: it is new here
  PhaseEvent event = PhaseEvent::kSubmitted;
  JobPhase to = JOB_PHASE_UNSPECIFIED;
  PhaseEffect effect = PhaseEffect::kNone;
  JobIntent least = INTENT_RUN;
  JobIntent most = INTENT_CANCEL;
};

// All of them; an edge's index is its number.
absl::Span<const PhaseEdge> PhaseEdges();

// The number of the one edge that is taken; -1: the event cannot happen.
int NextPhaseEdge(JobPhase phase, JobIntent intent, PhaseEvent event);

// Where the table has no edge for the event, a job that fails for that still
// has to leave its workers: the effect of any edge by the event; or none.
PhaseEffect EffectOf(PhaseEvent event);

// "AwaitPlaces", "all let go", "stop ranks", "save and cancel".
std::string PhaseName(JobPhase phase);
std::string EventName(PhaseEvent event);
std::string EffectName(PhaseEffect effect);
std::string IntentName(JobIntent intent);
// "Stopping -- all let go --> LetGo"
std::string EdgeName(const PhaseEdge& edge);

// The table as a state diagram, in Mermaid's language.
std::string DrawPhases();

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_PHASE_H_
