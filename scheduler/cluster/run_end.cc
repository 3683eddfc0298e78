#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "proto/plan/last_step.h"
#include "scheduler/cluster/attempt_counts.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/enter_phase.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/starts_elsewhere.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {
namespace {

// Why a job that succeeded did not run all of its steps; empty: it did.
std::string EarlyEnd(const Job& job) {
  const TrainingSpec& training = job.plan->job().training();
  const int64_t last = LastStep(training);
  if (last == training.steps()) return "";
  return absl::StrCat("stopped after step ", last, " of ", training.steps(),
                      " as asked");
}

// What was only in the ranks' memory, and is lost with them; or empty.
std::string WhatIsUnsaved(const JobStatus& status) {
  if (status.unsaved().empty()) return "";
  return absl::StrCat("; the checkpoint of step ", status.unsaved_step(),
                      " could not be written: ", status.unsaved());
}

std::string CancelledWhere(const Job& job) {
  const phase::Stopped& stopped = *job.run->stopped();
  if (!job.run->saving()) {
    return absl::StrCat("after step ", job.status.steps_done(),
                        WhatIsUnsaved(job.status));
  }
  const int64_t step = job.run->ranks.StepOfAll();
  const std::string where =
      absl::StrCat(WhyOf(job.run->intent), " after step ", step);
  for (const CheckpointRecord& checkpoint : job.status.checkpoints()) {
    if (checkpoint.step() != step) continue;
    return absl::StrCat(where, "; saved in ", checkpoint.path());
  }
  return absl::StrCat(where, "; it could not be saved",
                      stopped.cause.empty() ? "" : ": ", stopped.cause);
}

std::string FromWhere(const JobStatus& status) {
  if (status.checkpoints().empty()) return "from where it began";
  return absl::StrCat("from the checkpoint of step ",
                      status.checkpoints().rbegin()->step());
}

}  // namespace

// The part of RunControl that stops runs and ends them.

void RunControl::Fail(Job& job, Blame blame, const std::string& said,
                      absl::Time now, Actions& actions) {
  const std::string cause = OneLine(said, limits_.reason_bytes_max);
  // What ranks say while they are being stopped for a user is no failure; but
  // without the share of each of them nothing can be saved.
  phase::Stopped* const stopped = job.run->stopped();
  if (job.cancelled) {
    const bool better = stopped != nullptr && stopped->Explain(blame, cause);
    if (better && job.run->saving() && !job.ended()) {
      StopAgain(job, cause, true, now, actions);
    }
    return;
  }
  // Nobody has heard of it, and others may do.
  if (blame == Blame::kWorkerLost && job.status.state() == STARTING &&
      AwaitsStore(job) && !MayRecover(job)) {
    return start_.Withdraw(job, cause, now, actions);
  }
  const bool lost = blame == Blame::kWorkerLost;
  if (stopped == nullptr) {
    return Stop(job, {.blame = blame, .cause = cause}, cause, now, actions);
  }
  const bool better = stopped->Explain(blame, cause);
  const bool moves = job.moves();
  if (moves) {
    stopped->save = blame == Blame::kRank || blame == Blame::kHang
                        ? SaveAtStop::kUnwritten
                        : SaveAtStop::kSpoilt;
  } else if (lost && stopped->save == SaveAtStop::kUnwritten) {
    stopped->save = SaveAtStop::kSpoilt;
  }
  const bool too_many = lost && IsOneLossTooMany(EndOf(job));
  if (too_many) stopped->goes_on = false;
  if (moves) {
    StopAgain(job, cause, true, now, actions);
  } else if ((better || (too_many && job.status.state() == RECOVERING)) &&
             !job.ended()) {
    SayStopped(job, cause, now, actions);
  } else if (better || (lost && !job.ended())) {
    jobs_.AddEvent(job, cause, now, actions);
  }
}

void RunControl::Stop(Job& job, phase::Stopped stopped,
                      const std::string& reason, absl::Time now,
                      Actions& actions) {
  Run& run = *job.run;
  const bool unheard = AwaitsStore(job);
  stopped.since = now;
  stopped.unheard = unheard || run.unheard();
  jobs_.Enter(job, PhaseEvent::kStopped, phase::Stopping(std::move(stopped)));
  job.run->stopped()->goes_on = MayRecover(job);
  SayStopped(job, reason, now, actions);
  if (unheard) {
    for (RankSeat& seat : run.ranks) {
      if (seat.live()) seat.state = RankSeat::kHeld;
    }
    return FinishIfLetGo(job, now, actions);
  }
  effects_.Perform(job, reason, actions);
}

void RunControl::StopAgain(Job& job, const std::string& reason, bool peers_gone,
                           absl::Time now, Actions& actions) {
  job.run->stopped()->since = now;
  job.run->stopped()->goes_on = MayRecover(job);
  SayStopped(job, reason, now, actions);
  effects_.StopRanks(job, reason, peers_gone, actions);
}

void RunControl::SayStopped(Job& job, const std::string& reason, absl::Time now,
                            Actions& actions) {
  const bool recovers = MayRecover(job);
  if (recovers && job.status.intent() == INTENT_RUN) {
    jobs_.Raise(job, intent::Recover{});
  }
  jobs_.SetState(job, recovers ? RECOVERING : STOPPING, reason, now, actions);
}

// What the job keeps is in doubt, so that nothing is saved of it.
void RunControl::FailForDefect(Job& job, absl::Time now, Actions& actions) {
  if (phase::Stopped* const stopped = job.run->stopped()) {
    stopped->save = SaveAtStop::kNotAsked;
    stopped->Explain(Blame::kRank, job.defect);
  } else {
    Stop(job, {.blame = Blame::kRank, .cause = job.defect}, job.defect, now,
         actions);
  }
  // That frees the workers of an attempt that no rank has heard of.
  if (!job.ended()) jobs_.SetState(job, FAILED, job.defect, now, actions);
  FinishIfLetGo(job, now, actions);
}

void RunControl::FinishIfLetGo(Job& job, absl::Time now, Actions& actions) {
  if (job.run == nullptr || !job.run->ranks.all_let_go()) return;
  steps_.StoreEarlyCommits(job, now, actions);
  const std::string differs = steps_.CheckOpenSteps(job, now, actions);
  CheckSaved(job, now, actions);
  if (job.moves() &&
      job.run->ranks.StepOfAll() < LastStep(job.plan->job().training())) {
    return MoveFromPlaces(job, now, actions);
  }
  if (MayStartElsewhere(job, workers_, limits_.starts_max)) {
    return StartElsewhere(job, now, actions);
  }
  // One that was not stopped has done all that it had to do.
  const bool stopped = job.status.intent() >= INTENT_RECOVER;
  if (job.status.state() == RECOVERING && stopped && !job.cancelled &&
      !job.moves()) {
    if (job.run->ranks.awaits()) return;  // for what they keep
    return job.run->between_attempts() ? places_.TakePlaces(job, now, actions)
                                       : places_.AwaitPlaces(job, now, actions);
  }
  LetGo(job, jobs_);
  // One that was not stopped, too, fails for that.
  if (!differs.empty()) job.run->stopped()->Explain(Blame::kRank, differs);
  if (!job.ended() && !job.cancelled && MayBeginAgain(job)) {
    return BeginAgain(job, now, actions);
  }
  Finish(job, now, actions);
}

void RunControl::MoveFromPlaces(Job& job, absl::Time now, Actions& actions) {
  if (job.run->ranks.awaits()) return;
  // What a start was to go on from may be in copies.
  if (job.run->is<phase::SavingCopies>()) return;
  places_.LeaveBadMachines(job, actions);
  places_.DropOlderCopies(job, actions);
  if (!job.run->is<phase::AwaitPlaces>()) {
    LetGo(job, jobs_);
    WaitInPlaces(job, now, jobs_);
  }
  job.run->between()->let_go = now;
  moves_.Narrow(job, now, actions);
}

void RunControl::Finish(Job& job, absl::Time now, Actions& actions) {
  jobs_.Enter(job, PhaseEvent::kFinished, phase::Ended{});
  if (!job.ended()) {
    if (job.cancelled) {
      jobs_.SetState(job, CANCELLED, CancelledWhere(job), now, actions);
    } else if (job.run->blame() != Blame::kNone) {
      jobs_.SetState(job, FAILED, WhyFailed(job), now, actions);
    } else {
      jobs_.SetState(job, SUCCEEDED, EarlyEnd(job), now, actions);
    }
  }
  effects_.Perform(job, "", actions);
  jobs_.EndRun(job);
}

// Ranks that are to save their step end when it is a checkpoint. Those that
// ended before were stopped by an earlier scheduler, which died before it could
// write why.
void RunControl::CheckSaved(Job& job, absl::Time now, Actions& actions) {
  const RankSeats& ranks = job.run->ranks;
  if (!job.moves() || ranks.awaits()) return;
  const int64_t done = ranks.StepOfAll();
  const bool trained = done >= std::max<int64_t>(1, ranks.FirstStep());
  const auto stopped = std::find_if(
      ranks.begin(), ranks.end(),
      [](const RankSeat& seat) { return !seat.stopped_for.empty(); });
  if (!trained || stopped == ranks.end() ||
      NewestCheckpoint(job.status) >= done) {
    return;
  }
  Fail(job, Blame::kMissingPeer,
       absl::StrCat(stopped->Name(static_cast<int>(stopped - ranks.begin())),
                    " was stopped after step ", done,
                    ", which is not saved: ", stopped->stopped_for),
       now, actions);
}

void RunControl::BeginAgain(Job& job, absl::Time now, Actions& actions) {
  StandStill(job);
  steps_.CloseSteps(job, *job.run, -1, actions);
  CountRestart(job);
  start_.BackToQueue(job, PhaseEvent::kGoesOnAnew,
                     absl::StrCat("waits to go on ", FromWhere(job.status),
                                  "; ", job.run->stopped()->cause),
                     now, actions);
}

void RunControl::StartElsewhere(Job& job, absl::Time now, Actions& actions) {
  if (!job.run->tries_again) ++job.failed_starts;
  const std::string cause = job.run->stopped()->cause;
  LetGo(job, jobs_);
  start_.BackToQueue(job, PhaseEvent::kGoesOnAnew,
                     absl::StrCat("is tried on other workers; ", cause), now,
                     actions);
}

}  // namespace troupe
