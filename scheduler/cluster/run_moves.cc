#include "scheduler/cluster/run_moves.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "scheduler/cluster/attempt_counts.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/enter_phase.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/run_words.h"

namespace troupe {

void RunMoves::SaveAndMove(Job& job, const std::string& why, absl::Time now,
                           Actions& actions) {
  CHECK(job.run != nullptr && !job.run->stopping()) << "job " << job.id;
  jobs_.Raise(job, intent::SaveMove{why});
  verdicts_.Stop(job, {.save = SaveAtStop::kAsked},
                 absl::StrCat(why, ": the job is saved, to go on with others"),
                 now, actions);
}

void RunMoves::MoveAsItIs(Job& job, const std::string& why, absl::Time now,
                          Actions& actions) {
  Run& run = *job.run;
  // In a start those that are ready save, if all are.
  if (!run.stopping()) return SaveAndMove(job, why, now, actions);
  jobs_.Raise(job, intent::SaveMove{why});
  if (run.is<phase::AwaitPlaces>() || AwaitsCopiesStored(job)) {
    Narrow(job, now, actions);
  }
}

bool RunMoves::MovesOn(const Job& job) const {
  return (draining_ || job.moves() || job.ends_once_saved()) && MayMove(job);
}

void RunMoves::Move(Job& job, const std::string& why, absl::Time now,
                    Actions& actions) {
  const bool costs_restart = job.run->CostsRestart();
  StandStill(job);
  steps_.CloseSteps(job, *job.run, -1, actions);
  const int64_t saved = NewestCheckpoint(job.status);
  if (job.ends_once_saved()) {
    const auto* const copies = job.run->in<phase::SavingCopies>();
    const bool all_there_was =
        copies != nullptr && copies->state.step() == saved;
    job.cancelled = true;
    jobs_.Enter(job, PhaseEvent::kFinished, phase::Ended{});
    jobs_.SetState(job, CANCELLED,
                   absl::StrCat(WhyOf(job.run->intent), " after step ",
                                job.status.steps_done(),
                                WhereSaved(job.status, all_there_was)),
                   now, actions);
    effects_.Perform(job, "", actions);
    jobs_.EndRun(job);
    return;
  }
  if (costs_restart) CountRestart(job);
  start_.BackToQueue(
      job, PhaseEvent::kMoved,
      absl::StrCat("goes on with other workers from ",
                   saved < 0 ? "where it began, for neither copies nor "
                               "a checkpoint are left"
                             : absl::StrCat("step ", saved),
                   "; ", why),
      now, actions);
  job.waits()->moved = true;
}

bool RunMoves::MayNarrow(const Job& job) const {
  const Run& run = *job.run;
  return job.plan->job().has_elastic() && run.is<phase::AwaitPlaces>() &&
         run.ranks.taken() + workers_.idle_count() >=
             job.plan->job().elastic().min_workers();
}

bool RunMoves::NarrowWaiting(absl::Time now, Actions& actions) {
  bool queued = false;
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr && MayNarrow(*job) && !IsPaused(*job, now)) {
      Narrow(*job, now, actions);
      queued |= job->status.state() == QUEUED;
    }
  }
  return queued;
}

void RunMoves::Narrow(Job& job, absl::Time now, Actions& actions) {
  const absl::optional<Recovery> newest = CopiesToSave(job);
  if (newest.has_value()) {
    if (job.run->is<phase::SavingCopies>()) {  // of an older step
      SaveNoCopies(job, jobs_);
    }
    return copies_.SaveCopiesOf(job, *newest, now, actions);
  }
  const bool hurries = draining_ || job.ends_once_saved();
  if (!hurries && NewestCheckpoint(job.status) >= 0 &&
      NewestCopies(*job.run).has_value()) {
    return copies_.StoreCheckpoint(job, now, actions);
  }
  Move(job, WhyItMoves(*job.run), now, actions);
}

bool RunMoves::LosesNothing(const Job& job, absl::Time now) const {
  return !CannotBeSaved(job) && (!CopiesToSave(job).has_value() ||
                                 (MayMove(job) && !IsPaused(job, now)));
}

WaitingJob RunMoves::AsWaiting(const Job& job, absl::Time now) const {
  const Run& run = *job.run;
  WaitingJob waits = {
      .job = job.id,
      .vacant = PlacesWith(run, {}),
      .prediction = &run.handed->plan->prediction(),
      .avoids = run.wrong_workers,
      .has_waited = now - run.between()->let_go >= limits_.give_way_after,
      .loses_nothing = LosesNothing(job, now),
  };
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    const RankSeat& seat = run.ranks[r];
    waits.places.push_back({.rank = static_cast<int>(r), .lost = seat.machine});
    if (seat.taken()) waits.holds.push_back(workers_.Find(seat.worker));
  }
  for (const auto& [worker, why] :
       AvoidedInPlaces(job, waits.vacant, workers_)) {
    waits.avoids.insert(worker);
  }
  return waits;
}

bool RunMoves::GiveWay(const absl::optional<NextInQueue>& next, absl::Time now,
                       Actions& actions) {
  if (draining_) return false;
  Contest contest = {.waiting = {},
                     .next = next,
                     .idle = workers_.Idle(),
                     .alive = workers_.InService()};
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr || !job->run->between_attempts()) continue;
    WaitingJob waits = AsWaiting(*job, now);
    if (job->run->is<phase::SavingCopies>()) {  // it gives its workers away
      contest.idle.insert(contest.idle.end(), waits.holds.begin(),
                          waits.holds.end());
    } else {
      contest.waiting.push_back(std::move(waits));
    }
  }
  const absl::optional<GivesWay> way = WhoGivesWay(contest);
  if (!way.has_value()) return false;
  Job& job = *jobs_.Find(way->job);
  jobs_.AddEvent(
      job,
      absl::StrCat("gives its workers to job ", way->to.value(),
                   ", for it has waited ",
                   absl::FormatDuration(limits_.give_way_after), " for others"),
      now, actions);
  Narrow(job, now, actions);
  return job.status.state() == QUEUED;
}

}  // namespace troupe
