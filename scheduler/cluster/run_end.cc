#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/one_line.h"
#include "proto/plan/last_step.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/rank_view.h"
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
      absl::StrCat(job.run->intent_why, " after step ", step);
  for (const CheckpointRecord& checkpoint : job.status.checkpoints()) {
    if (checkpoint.step() != step) continue;
    return absl::StrCat(where, "; saved in ", checkpoint.path());
  }
  return absl::StrCat(where, "; it could not be saved",
                      stopped.cause.empty() ? "" : ": ", stopped.cause);
}

// The rank whose disk has not got on for longest; -1: none reads or writes.
int SlowestDisk(const Run& run) {
  int slowest = -1;
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    const RankReport& report = run.reports[r];
    if (!run.ranks[r].live() || !report.progress.has_disk()) continue;
    if (slowest < 0 || report.disk_moved < run.reports[slowest].disk_moved) {
      slowest = static_cast<int>(r);
    }
  }
  return slowest;
}

// For a job in which nobody waits for another in a program.
std::string LastHeard(const Run& run, absl::Time now) {
  if (const int slowest = SlowestDisk(run); slowest >= 0) {
    const RankReport& report = run.reports[slowest];
    return EndWords(slowest, report,
                    {.state = RankView::kBetween, .age = now - report.heard});
  }
  const int rank = run.ranks.Laggard();
  const RankSeat& seat = run.ranks[rank];
  return absl::StrCat(
      seat.Name(rank), " is last: it reported step ", seat.step, " ",
      absl::FormatDuration(absl::Trunc(now - seat.heard, absl::Seconds(1))),
      " ago");
}

}  // namespace

// The part of RunControl that ends runs: failures, time.

void RunControl::WorkerGone(JobId id, WorkerId worker, const std::string& how,
                            const std::string& reason, absl::Time now,
                            Actions& actions) {
  Job* job = jobs_.Find(id);
  CHECK(job != nullptr && job->run != nullptr) << "job " << id;
  auto& ranks = job->run->ranks;
  const auto seat = std::find_if(
      ranks.begin(), ranks.end(),
      [worker](const RankSeat& s) { return s.worker == worker && s.taken(); });
  CHECK(seat != ranks.end()) << "worker " << worker << " in job " << id;
  // What it did to the end needs it no more, unless the others fail; nor does
  // what was saved, unless that are its copies.
  const int rank = static_cast<int>(seat - ranks.begin());
  const bool saves = job->run->SavesCopiesWith(rank);
  if (saves) {
    jobs_.Enter(*job, PhaseEvent::kCopiesGivenUp,
                phase::AwaitPlaces(*job->run->between()));
  }
  const bool done =
      seat->succeeded || (job->moves() && !seat->live() && !saves);
  seat->Lose();
  StoreEarlyCommits(*job, now, actions);
  if (!done) {
    if (how != "left") blame_.Failed(*job, *seat, reason, now, actions);
    Fail(*job, Blame::kWorkerLost,
         absl::StrCat(seat->Name(rank), " ", how, " in ", Place(*job), ": ",
                      reason, late_.WaitersFor(*job, rank, now)),
         now, actions);
  } else if (seat->succeeded) {
    TrainIfAllReady(*job, now, actions);
  }
  FinishIfLetGo(*job, now, actions);
}

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
    return Withdraw(job, cause, now, actions);
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
  Perform(job, reason, actions);
}

void RunControl::StopAgain(Job& job, const std::string& reason, bool peers_gone,
                           absl::Time now, Actions& actions) {
  job.run->stopped()->since = now;
  job.run->stopped()->goes_on = MayRecover(job);
  SayStopped(job, reason, now, actions);
  StopRanks(job, reason, peers_gone, actions);
}

void RunControl::SayStopped(Job& job, const std::string& reason, absl::Time now,
                            Actions& actions) {
  const bool recovers = MayRecover(job);
  if (recovers && job.status.intent() == INTENT_RUN) {
    jobs_.Raise(job, INTENT_RECOVER, "");
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

void RunControl::LetGo(Job& job) {
  const Run& run = *job.run;
  if (run.is<phase::LetGo>()) return;
  jobs_.Enter(
      job,
      run.between_attempts() ? PhaseEvent::kStopped : PhaseEvent::kAllLetGo,
      phase::LetGo(run.stopping() ? *run.stopped() : phase::Stopped()));
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

void RunControl::FinishIfLetGo(Job& job, absl::Time now, Actions& actions) {
  if (job.run == nullptr || !job.run->ranks.all_let_go()) return;
  StoreEarlyCommits(job, now, actions);
  const std::string differs = CheckOpenSteps(job, now, actions);
  CheckSaved(job, now, actions);
  if (job.moves() &&
      job.run->ranks.StepOfAll() < LastStep(job.plan->job().training())) {
    if (job.run->ranks.awaits()) return;
    // What a start was to go on from may be in copies.
    if (job.run->is<phase::SavingCopies>()) return;
    LeaveBadMachines(job, actions);
    DropOlderCopies(job, actions);
    if (!job.run->is<phase::AwaitPlaces>()) {
      LetGo(job);
      WaitInPlaces(job, now);
    }
    job.run->between()->let_go = now;
    return Narrow(job, now, actions);
  }
  if (MayStartElsewhere(job)) return StartElsewhere(job, now, actions);
  // One that was not stopped has done all that it had to do.
  const bool stopped = job.status.intent() >= INTENT_RECOVER;
  if (job.status.state() == RECOVERING && stopped && !job.cancelled &&
      !job.moves()) {
    if (job.run->ranks.awaits()) return;  // for what they keep
    return job.run->between_attempts() ? TakePlaces(job, now, actions)
                                       : AwaitPlaces(job, now, actions);
  }
  LetGo(job);
  // One that was not stopped, too, fails for that.
  if (!differs.empty()) job.run->stopped()->Explain(Blame::kRank, differs);
  if (!job.ended() && !job.cancelled && MayBeginAgain(job)) {
    return BeginAgain(job, now, actions);
  }
  jobs_.Enter(job, PhaseEvent::kFinished);
  if (!job.ended()) {
    if (job.cancelled) {
      jobs_.SetState(job, CANCELLED, CancelledWhere(job), now, actions);
    } else if (job.run->blame() != Blame::kNone) {
      jobs_.SetState(job, FAILED, WhyFailed(job), now, actions);
    } else {
      jobs_.SetState(job, SUCCEEDED, EarlyEnd(job), now, actions);
    }
  }
  Perform(job, "", actions);
  jobs_.EndRun(job);
}

void RunControl::Forgive(absl::Duration time, absl::Time now) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr) job->run->Forgive(time, now);
  }
}

std::vector<StuckWorker> RunControl::Tick(absl::Time now, Actions& actions) {
  std::vector<StuckWorker> stuck;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr) continue;
    CheckAwaited(*job, now, actions);
    if (job->run != nullptr) SayStored(*job, now, actions);
    if (job->run != nullptr) CheckTime(*job, now, actions, stuck);
    if (job->run == nullptr) continue;  // that ended it
    StoreQuestion* const asked = AskedOf(job->run->phase);
    if (asked != nullptr && now - asked->again > limits_.store_retry) {
      asked->again = absl::InfiniteFuture();
      AwaitTheStore(*job, actions);
    }
  }
  return stuck;
}

std::vector<JobId> RunControl::Unstored(absl::Time now) const {
  std::vector<JobId> unstored;
  for (const auto& [id, job] : jobs_.all()) {
    const bool starts = AwaitsStore(*job);
    if (!starts && !AwaitsCopiesStored(*job)) continue;
    const absl::Time since =
        starts ? job->run->started : job->run->in<phase::SavingCopies>()->since;
    if (now - since > limits_.start_max) unstored.push_back(id);
  }
  return unstored;
}

void RunControl::CheckStart(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const absl::Time since = std::max(run.started, run.disk_progress);
  if (now - since <= limits_.start_max) return;
  const int slowest = SlowestDisk(run);
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    if (run.ranks[r].state != RankSeat::kStarting) continue;
    const int rank = static_cast<int>(r);
    return Fail(job, Blame::kHang,
                absl::StrCat(run.ranks[r].Name(rank), " was not ready within ",
                             absl::FormatDuration(limits_.start_max),
                             slowest < 0 ? "" : "; ",
                             slowest < 0 ? "" : LastHeard(run, now)),
                now, actions);
  }
}

void RunControl::CheckTime(Job& job, absl::Time now, Actions& actions,
                           std::vector<StuckWorker>& stuck) {
  Run& run = *job.run;
  if (const auto* const saving = run.in<phase::SavingCopies>()) {
    const bool in_time = saving->stage >= phase::SavingCopies::kStoring ||
                         now - saving->since <= limits_.save_copies_max;
    if (in_time) return;
    return GiveUpCopies(
        job, Unsaved::kLate,
        absl::StrCat("not within ",
                     absl::FormatDuration(limits_.save_copies_max)),
        now, actions);
  }
  if (const phase::Stopped* const stopped = run.stopped()) {
    // One that saves has time as long as it gets on.
    const absl::Time since =
        run.saving() ? std::max(stopped->since, run.progress) : stopped->since;
    const absl::Duration waited = now - since;
    if (!job.ended() && !job.cancelled && waited > limits_.fail_grace &&
        job.status.state() != RECOVERING && !StartsOnceMore(job)) {
      jobs_.SetState(job, FAILED, WhyFailed(job), now, actions);
    }
    // One that is cancelled finishes its step first, however long that is, but
    // none waits for its peers any more once something is known to be wrong.
    const bool goes_on = (job.cancelled || job.moves()) &&
                         !(run.saving() && run.blame() != Blame::kNone);
    const absl::Duration wait_max =
        goes_on ? std::max(run.hang_max, limits_.stop_max) : limits_.stop_max;
    if (waited <= wait_max) return;
    // Most of them wait for the one that does not get on: they let go when they
    // hear that.
    if (goes_on && run.saving()) return FailForHang(job, now, actions);
    for (const RankSeat& seat : run.ranks) {
      if (!seat.live()) continue;
      stuck.push_back(
          {seat.worker,
           absl::StrCat("did not let go of job ", job.id.value(), " within ",
                        absl::FormatDuration(wait_max))});
    }
    return;
  }
  if (run.ranks.awaits()) return;
  if (job.status.state() == STARTING || job.status.state() == RECOVERING) {
    return CheckStart(job, now, actions);
  }
  if (now - run.progress <= run.hang_max) {
    return late_.CheckStep(job, now, actions);
  }
  FailForHang(job, now, actions);
}

void RunControl::FailForHang(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  std::string who = late_.WaitsOf(job, now).Text();
  if (who.empty()) who = LastHeard(run, now);
  Fail(job, Blame::kHang,
       absl::StrCat("no progress for ", absl::FormatDuration(run.hang_max),
                    " in ", Place(job), "; ", who),
       now, actions);
}

}  // namespace troupe
