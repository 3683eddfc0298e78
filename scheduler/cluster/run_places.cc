#include "scheduler/cluster/run_places.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "scheduler/cluster/attempt_counts.h"
#include "scheduler/cluster/choose_recovery.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/enter_phase.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/wait_reason.h"

namespace troupe {
namespace {

std::string SeatNames(const Run& run, const std::vector<VacantPlace>& places) {
  std::vector<std::string> names;
  for (const VacantPlace& place : places) {
    names.push_back(run.ranks[place.rank].Name(place.rank));
  }
  return NameList(std::move(names));
}

}  // namespace

void RunPlaces::AwaitPlaces(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  LetGo(job, jobs_);
  if (moves_.MovesOn(job)) return AwaitPlacesNow(job, now, actions);
  phase::Stopped& stopped = *run.stopped();
  if (stopped.save == SaveAtStop::kUnwritten)
    return GoOnUnmoved(job, now, actions);
  if (run.says_nothing()) return AwaitPlacesNow(job, now, actions);
  const int64_t done = job.status.steps_done();
  if (done > job.failed_at_step) job.failures_in_step = job.losses_in_step = 0;
  job.failed_at_step = done;
  ++(IsOfWorker(stopped.blame) ? job.losses_in_step : job.failures_in_step);
  const std::string why_not = WhyNotAgain(job);
  if (!why_not.empty()) {
    stopped.cause += why_not;
    jobs_.SetState(job, STOPPING, stopped.cause, now, actions);
    return verdicts_.FinishIfLetGo(job, now, actions);
  }
  AwaitPlacesNow(job, now, actions);
}

std::string RunPlaces::WhyNotAgain(const Job& job) const {
  const bool lost = IsOfWorker(job.run->blame());
  const FruitlessAttempts attempts = {.lost = lost,
                                      .losses = job.losses_in_step,
                                      .failures = job.failures_in_step};
  if (!IsGivenUp(attempts, {.losses = limits_.losses_in_a_step_max,
                            .failures = limits_.failures_in_a_step_max})) {
    return "";
  }
  return absl::StrCat("; ", lost ? attempts.losses : attempts.failures,
                      " attempts have ", lost ? "lost a worker" : "failed",
                      " since the last new step, so that the job is not ",
                      "started again");
}

void RunPlaces::AwaitPlacesNow(Job& job, absl::Time now, Actions& actions) {
  LeaveBadMachines(job, actions);
  DropOlderCopies(job, actions);
  WaitInPlaces(job, now, jobs_);
  steps_.CloseSteps(job, *job.run, -1, actions);
  TakePlaces(job, now, actions);
}

// It was well, and would be, but for the disk: that is no failure of its steps,
// but asked for again and again it would be one of the job.
void RunPlaces::GoOnUnmoved(Job& job, absl::Time now, Actions& actions) {
  jobs_.AddEvent(job,
                 absl::StrCat("goes on as it is, for it could not be saved to "
                              "move; that is tried again in ",
                              absl::FormatDuration(job.move_pause)),
                 now, actions);
  PauseMoves(job, now);
  AwaitPlacesNow(job, now, actions);
}

void RunPlaces::RecoverWaiting(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr && job->run->between_attempts()) {
      TakePlaces(*job, now, actions);
    }
  }
}

void RunPlaces::TakePlaces(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (moves_.MovesOn(job)) {
    if (run.is<phase::AwaitPlaces>()) moves_.Narrow(job, now, actions);
    return;
  }
  if (auto* const awaits = run.in<phase::AwaitPlaces>()) {
    awaits->for_disk = false;
  }
  const Plan& plan = *run.handed->plan;
  const std::set<int> leaving = LeavingRanks(job, workers_);
  const bool leave = !leaving.empty();
  const bool asked = !RanksAskedToLeave(job, workers_).empty();
  const std::vector<VacantPlace> places = PlacesWith(run, leaving);
  if (run.is<phase::SavingCopies>() && AwaitsCommit(run, leave)) return;
  const FailedStarts avoided = AvoidedInPlaces(job, places, workers_);
  const std::vector<const Worker*> filled =
      FillPlaces(places, plan.prediction(),
                 Without(Without(workers_.Idle(), run.wrong_workers), avoided),
                 job.failed_on);
  const auto empty = std::count(filled.begin(), filled.end(), nullptr);
  if (leave && MayMove(job) && CopiesToSave(job).has_value() &&
      (empty > 0 ? asked : LosesSteps(job, leaving))) {
    if (!run.is<phase::AwaitPlaces>()) return;
    if (!asked && IsPaused(job, now)) return AwaitDisk(job, leaving, actions);
    return moves_.Narrow(job, now, actions);
  }
  // A worker that may stay keeps what it has while the job waits for others.
  if (asked || empty == 0) LetLeave(job, leaving, actions);
  if (empty > 0) {
    if (run.is<phase::SavingCopies>()) return;
    return jobs_.SetWaitReason(
        job,
        absl::StrCat("waits for ", empty,
                     empty == 1 ? " idle worker" : " idle workers",
                     " with room for a rank, to take the place of ",
                     SeatNames(run, places), OrGoesOnWith(job, now),
                     WhyItKeepsItsWorkers(job), WhatItAvoids(job, avoided),
                     "; ", run.stopped()->cause),
        actions);
  }
  std::vector<const Worker*> workers;
  size_t next = 0;
  for (const RankSeat& seat : run.ranks) {
    workers.push_back(seat.taken() ? workers_.Find(seat.worker)
                                   : filled[next++]);
    CHECK(workers.back() != nullptr) << "job " << job.id;
  }
  StartAgain(job, workers, now, actions);
}

std::string RunPlaces::OrGoesOnWith(const Job& job, absl::Time now) const {
  if (!job.plan->job().has_elastic()) return "";
  return absl::StrCat(
      ", or goes on with ", job.plan->job().elastic().min_workers(),
      " workers or more",
      IsPaused(job, now)
          ? absl::StrCat(
                " when its copies are saved, which failed and is tried "
                "again at ",
                absl::FormatTime("%H:%M:%S UTC", job.moves_after,
                                 absl::UTCTimeZone()))
          : "");
}

void RunPlaces::LetLeave(Job& job, const std::set<int>& ranks,
                         Actions& actions) {
  for (const int rank : ranks) {
    if (job.run->SavesCopiesWith(rank)) {
      SaveNoCopies(job, jobs_);
    }
    RankSeat& seat = job.run->ranks[rank];
    SendGiveUpKept(job, rank, actions);
    workers_.Release(seat.worker);
    seat.Lose();
  }
}

// There the rank would fail again, another worker could take its place, and
// others have copies of its state. Where they have not, one more attempt is
// made there; then the copies are saved, or else lost (LeavingRanks).
void RunPlaces::LeaveBadMachines(Job& job, Actions& actions) {
  for (int rank = 0; rank < static_cast<int>(job.run->ranks.size()); ++rank) {
    if (!IsBetterElsewhere(job, rank, workers_)) continue;
    if (!LosesSteps(job, GoneWith(job, rank, workers_)))
      effects_.Free(job, rank, actions);
  }
}

// Once all were ready, all had heard of the attempt: what one keeps of an
// earlier one is of another past.
void RunPlaces::DropOlderCopies(Job& job, Actions& actions) const {
  Run& run = *job.run;
  const bool ran =
      std::any_of(run.ranks.begin(), run.ranks.end(),
                  [](const RankSeat& seat) { return seat.ready(); });
  if (!ran) return;
  for (size_t r = 0; r < run.ranks.size(); ++r) {
    RankSeat& seat = run.ranks[r];
    if (seat.kept_by_attempt >= run.attempt) continue;
    SendGiveUpKept(job, static_cast<int>(r), actions);
    seat.kept.clear();
  }
}

void RunPlaces::AwaitDisk(Job& job, const std::set<int>& ranks,
                          Actions& actions) {
  Run& run = *job.run;
  run.in<phase::AwaitPlaces>()->for_disk = true;
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(run.ranks[rank].Name(rank));
  jobs_.SetWaitReason(
      job,
      absl::StrCat("keeps ", NameList(std::move(names)),
                   " until the copies of ", "step ",
                   NewestCopies(run)->state().step(),
                   " are saved, which failed and is tried again at ",
                   absl::FormatTime("%H:%M:%S UTC", job.moves_after,
                                    absl::UTCTimeZone()),
                   "; ", run.stopped()->cause),
      actions);
}

void RunPlaces::SaveAgain(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    const phase::AwaitPlaces* const awaits =
        job->run == nullptr ? nullptr : job->run->in<phase::AwaitPlaces>();
    if (awaits == nullptr || !awaits->for_disk || IsPaused(*job, now)) continue;
    TakePlaces(*job, now, actions);
  }
}

void RunPlaces::TryAgainWhereStartsFailed(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr || !job->run->is<phase::AwaitPlaces>()) continue;
    if (now < TriesAgainAt(*job)) continue;
    TryAgainWhereItsStartFailed(*job, now, actions);
  }
}

// Others that are busy may be so for days, or keep what they have for a job
// that avoids the same worker.
void RunPlaces::TryAgainWhereItsStartFailed(Job& job, absl::Time now,
                                            Actions& actions) {
  const Run& run = *job.run;
  const std::vector<VacantPlace> places =
      PlacesWith(run, LeavingRanks(job, workers_));
  const FailedStarts avoided = AvoidedInPlaces(job, places, workers_);
  if (avoided.empty()) return;
  const std::vector<const Worker*> filled =
      FillPlaces(places, run.handed->plan->prediction(),
                 Without(workers_.Idle(), run.wrong_workers), job.failed_on);
  if (std::count(filled.begin(), filled.end(), nullptr) > 0) return;
  AvoidNoMore(job, avoided, now, actions);
  TakePlaces(job, now, actions);
  if (!job.run->between_attempts()) job.run->tries_again = true;
}

void RunPlaces::AvoidNoMore(Job& job, const FailedStarts& avoided,
                            absl::Time now, Actions& actions) {
  const std::set<std::string> names = NamesOf(avoided);
  jobs_.AddEvent(
      job,
      absl::StrCat(
          "has waited ", absl::FormatDuration(job.avoid_pause),
          " for other workers, and tries again where its start "
          "failed: ",
          NameList(std::vector<std::string>(names.begin(), names.end()))),
      now, actions);
  job.failed_on.clear();
  job.avoid_pause = NextPause(job.avoid_pause);
}

void RunPlaces::StartAgain(Job& job, const std::vector<const Worker*>& workers,
                           absl::Time now, Actions& actions) {
  StandStill(job);
  std::unique_ptr<Run> before = jobs_.EndRun(job);
  absl::optional<Recovery> recovery = NewestCopies(*before);
  const int64_t saved = NewestCheckpoint(job.status);
  const bool older = recovery.has_value() && recovery->state().step() < saved;
  if (older) recovery.reset();  // the checkpoint costs fewer steps
  std::vector<WorkerDescription> machines;
  std::vector<std::string> came;
  for (size_t r = 0; r < workers.size(); ++r) {
    machines.push_back(workers[r]->status.description());
    if (before->ranks[r].taken()) {
      workers_.Release(workers[r]->id);  // to be seated again
    } else {
      came.push_back(absl::StrCat(workers[r]->name(), " takes rank ", r));
    }
  }
  start_.BeginRun(job, PhaseEvent::kPlacesTaken, *job.plan, now);
  Run& run = *job.run;
  run.follows = FollowsAttempt{.let_go = before->between()->let_go};
  run.wrong_before = before->WrongBeforeNext();
  run.wrong_workers = before->wrong_workers;
  for (size_t r = 0; r < workers.size(); ++r) {
    run.ranks[r].kept = before->ranks[r].kept;
    run.ranks[r].kept_by_attempt = before->ranks[r].kept_by_attempt;
  }
  if (recovery.has_value()) run.follows->resumes_at = recovery->state().step();
  steps_.CloseSteps(job, *before, run.follows->resumes_at, actions);
  run.steps.StartAfter(job.status.steps_done());
  if (before->CostsRestart()) CountRestart(job);
  job.status.clear_workers();
  start_.Seat(job, workers, now);
  auto common = std::make_shared<troupe::HandOut>();
  common->plan = before->handed->plan;
  common->moved = std::make_shared<const MovedPlan>(common->plan, machines);
  common->loads_data = before->handed->loads_data;
  common->machines = machines;
  common->assignment = before->handed->assignment;
  *common->assignment.mutable_worker_names() = job.status.workers();
  common->assignment.clear_recovery();
  // One that was refused its directory in its start has nothing there.
  common->assignment.set_ran_before(job.status.started_unix_ms() != 0);
  if (recovery.has_value()) *common->assignment.mutable_recovery() = *recovery;
  std::string from =
      absl::StrCat("from copies of step ", run.follows->resumes_at);
  if (saved >= 0) {
    common->assignment.set_resume(job.status.checkpoints().rbegin()->path());
    if (!recovery.has_value()) {
      from =
          absl::StrCat("from the checkpoint of step ", saved, ", for copies ",
                       older ? "are of an earlier step"
                             : "of all ranks' states are not left");
    }
  } else if (!recovery.has_value()) {
    from = "from where it began, for neither copies nor a checkpoint are left";
  }
  run.handed = std::move(common);
  const std::string begins = absl::StrCat(
      "attempt ", job.attempt, " ", from,
      came.empty() ? "" : absl::StrCat("; ", absl::StrJoin(came, ", ")),
      "; before it, ", before->stopped()->cause);
  run.in<phase::Storing>()->begins = begins;
  jobs_.SetState(job, RECOVERING, begins, now, actions);
  effects_.Perform(job, "", actions);
}

}  // namespace troupe
