#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "scheduler/cluster/phase.h"

namespace troupe {
namespace {

using E = PhaseEvent;
using F = PhaseEffect;

constexpr PhaseEdge kEdges[] = {
    {JOB_PHASE_UNSPECIFIED, E::kSubmitted, PHASE_QUEUED},
    {JOB_PHASE_UNSPECIFIED, E::kRestoredInQueue, PHASE_QUEUED},
    {JOB_PHASE_UNSPECIFIED, E::kRestoredEnded, PHASE_ENDED},
    {JOB_PHASE_UNSPECIFIED, E::kRestoredRunning, PHASE_ADOPTING},
    {JOB_PHASE_UNSPECIFIED, E::kRestoredStopping, PHASE_STOPPING},

    {PHASE_QUEUED, E::kPlanAsked, PHASE_PLANNED},
    {PHASE_QUEUED, E::kPlaced, PHASE_STORING, F::kStoreStart},
    {PHASE_QUEUED, E::kFinished, PHASE_ENDED},
    {PHASE_PLANNED, E::kPlanAnswered, PHASE_QUEUED},
    {PHASE_PLANNED, E::kFinished, PHASE_ENDED},

    {PHASE_STORING, E::kStored, PHASE_STARTING, F::kHandOut},
    {PHASE_STORING, E::kWithdrawn, PHASE_QUEUED, F::kFreeWorkers},
    {PHASE_STORING, E::kStopped, PHASE_STOPPING},
    {PHASE_STARTING, E::kAllReady, PHASE_TRAINING},
    {PHASE_STARTING, E::kStartCut, PHASE_QUEUED, F::kForgetRanks},
    {PHASE_STARTING, E::kStopped, PHASE_STOPPING, F::kStopRanks},
    {PHASE_TRAINING, E::kStopped, PHASE_STOPPING, F::kStopRanks},
    {PHASE_TRAINING, E::kAllLetGo, PHASE_LET_GO},
    {PHASE_STOPPING, E::kAllLetGo, PHASE_LET_GO},

    {PHASE_ADOPTING, E::kBackInStart, PHASE_STARTING},
    {PHASE_ADOPTING, E::kBackInTraining, PHASE_TRAINING},
    {PHASE_ADOPTING, E::kStartCut, PHASE_QUEUED, F::kForgetRanks},
    {PHASE_ADOPTING, E::kStopped, PHASE_STOPPING, F::kStopRanks},
    {PHASE_ADOPTING, E::kAllLetGo, PHASE_LET_GO},

    {PHASE_LET_GO, E::kGoesOn, PHASE_AWAIT_PLACES, F::kNone, INTENT_RECOVER,
     INTENT_SAVE_CANCEL},
    {PHASE_LET_GO, E::kGoesOnAnew, PHASE_QUEUED, F::kFreeWorkers},
    {PHASE_LET_GO, E::kFinished, PHASE_ENDED, F::kFreeWorkers},

    {PHASE_AWAIT_PLACES, E::kPlacesTaken, PHASE_STORING, F::kStoreStart,
     INTENT_RECOVER, INTENT_SAVE_MOVE},
    {PHASE_AWAIT_PLACES, E::kCopiesAsked, PHASE_SAVING_COPIES, F::kSaveCopies},
    {PHASE_AWAIT_PLACES, E::kCopiesCommitted, PHASE_SAVING_COPIES,
     F::kStoreCheckpoint},
    {PHASE_AWAIT_PLACES, E::kMoved, PHASE_QUEUED, F::kFreeWorkers,
     INTENT_RECOVER, INTENT_SAVE_MOVE},
    {PHASE_AWAIT_PLACES, E::kStopped, PHASE_LET_GO},
    {PHASE_AWAIT_PLACES, E::kFinished, PHASE_ENDED, F::kFreeWorkers,
     INTENT_SAVE_CANCEL, INTENT_SAVE_CANCEL},
    {PHASE_SAVING_COPIES, E::kPlacesTaken, PHASE_STORING, F::kStoreStart,
     INTENT_RECOVER, INTENT_SAVE_MOVE},
    {PHASE_SAVING_COPIES, E::kCopiesCommitted, PHASE_SAVING_COPIES,
     F::kStoreCheckpoint},
    {PHASE_SAVING_COPIES, E::kCopiesGivenUp, PHASE_AWAIT_PLACES},
    {PHASE_SAVING_COPIES, E::kMoved, PHASE_QUEUED, F::kFreeWorkers,
     INTENT_RECOVER, INTENT_SAVE_MOVE},
    {PHASE_SAVING_COPIES, E::kStopped, PHASE_LET_GO},
    {PHASE_SAVING_COPIES, E::kFinished, PHASE_ENDED, F::kFreeWorkers,
     INTENT_SAVE_CANCEL, INTENT_SAVE_CANCEL},
};

}  // namespace

absl::Span<const PhaseEdge> PhaseEdges() { return kEdges; }

int NextPhaseEdge(JobPhase phase, JobIntent intent, PhaseEvent event) {
  int number = 0;
  for (const PhaseEdge& edge : kEdges) {
    if (edge.from == phase && edge.event == event && edge.least <= intent &&
        intent <= edge.most) {
      return number;
    }
    ++number;
  }
  return -1;
}

PhaseEffect EffectOf(PhaseEvent event) {
  for (const PhaseEdge& edge : kEdges) {
    if (edge.event == event && edge.effect != F::kNone) return edge.effect;
  }
  return F::kNone;
}

std::string PhaseName(JobPhase phase) {
  switch (phase) {
    case PHASE_QUEUED:
      return "Queued";
    case PHASE_PLANNED:
      return "Planned";
    case PHASE_STORING:
      return "Storing";
    case PHASE_STARTING:
      return "Starting";
    case PHASE_TRAINING:
      return "Training";
    case PHASE_STOPPING:
      return "Stopping";
    case PHASE_LET_GO:
      return "LetGo";
    case PHASE_AWAIT_PLACES:
      return "AwaitPlaces";
    case PHASE_SAVING_COPIES:
      return "SavingCopies";
    case PHASE_ADOPTING:
      return "Adopting";
    case PHASE_ENDED:
      return "Ended";
    default:
      return "[*]";  // as Mermaid draws the way in
  }
}

std::string EventName(PhaseEvent event) {
  switch (event) {
    case E::kSubmitted:
      return "submitted";
    case E::kRestoredInQueue:
      return "restored in the queue";
    case E::kRestoredEnded:
      return "restored ended";
    case E::kRestoredRunning:
      return "restored running";
    case E::kRestoredStopping:
      return "restored stopping";
    case E::kPlanAsked:
      return "plan asked";
    case E::kPlanAnswered:
      return "plan answered";
    case E::kPlaced:
      return "placed";
    case E::kStored:
      return "start stored";
    case E::kWithdrawn:
      return "withdrawn";
    case E::kAllReady:
      return "all ready";
    case E::kBackInStart:
      return "all back, in the start";
    case E::kBackInTraining:
      return "all back, in training";
    case E::kStartCut:
      return "start was cut";
    case E::kStopped:
      return "stopped";
    case E::kAllLetGo:
      return "all let go";
    case E::kGoesOn:
      return "goes on";
    case E::kGoesOnAnew:
      return "goes on, planned anew";
    case E::kPlacesTaken:
      return "places taken";
    case E::kCopiesAsked:
      return "copies asked";
    case E::kCopiesCommitted:
      return "checkpoint is there";
    case E::kCopiesGivenUp:
      return "copies given up";
    case E::kMoved:
      return "moved to the queue";
    case E::kFinished:
      return "finished";
  }
  return "";
}

std::string EffectName(PhaseEffect effect) {
  switch (effect) {
    case F::kNone:
      return "";
    case F::kStoreStart:
      return "store start";
    case F::kHandOut:
      return "hand out";
    case F::kStopRanks:
      return "stop ranks";
    case F::kForgetRanks:
      return "forget ranks";
    case F::kFreeWorkers:
      return "free workers";
    case F::kSaveCopies:
      return "save copies";
    case F::kStoreCheckpoint:
      return "store checkpoint";
  }
  return "";
}

std::string IntentName(JobIntent intent) {
  switch (intent) {
    case INTENT_RUN:
      return "run";
    case INTENT_RECOVER:
      return "recover";
    case INTENT_SAVE_MOVE:
      return "save and move";
    case INTENT_SAVE_CANCEL:
      return "save and cancel";
    default:
      return "cancel";
  }
}

std::string EdgeName(const PhaseEdge& edge) {
  return absl::StrCat(PhaseName(edge.from), " -- ", EventName(edge.event),
                      " --> ", PhaseName(edge.to));
}

std::string DrawPhases() {
  std::string drawing = "stateDiagram-v2\n";
  for (const PhaseEdge& edge : kEdges) {
    std::string when;
    if (edge.least == edge.most) {
      when = absl::StrCat(" (", IntentName(edge.least), ")");
    } else if (edge.least != INTENT_RUN || edge.most != INTENT_CANCEL) {
      when = absl::StrCat(" (", IntentName(edge.least), " to ",
                          IntentName(edge.most), ")");
    }
    absl::StrAppend(&drawing, "    ", PhaseName(edge.from), " --> ",
                    PhaseName(edge.to), ": ", EventName(edge.event), when,
                    edge.effect == F::kNone ? "" : " / ",
                    EffectName(edge.effect), "\n");
  }
  return drawing;
}

}  // namespace troupe
