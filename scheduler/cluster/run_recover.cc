#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "scheduler/cluster/choose_recovery.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/rank_view.h"
#include "scheduler/cluster/run_control.h"
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

std::string FromWhere(const JobStatus& status) {
  if (status.checkpoints().empty()) return "from where it began";
  return absl::StrCat("from the checkpoint of step ",
                      status.checkpoints().rbegin()->step());
}

}  // namespace

// The part of RunControl that lets a job go on after a failure: on the workers
// that are left, and others in the places of those that are lost.

void RunControl::BeginAgain(Job& job, absl::Time now, Actions& actions) {
  StandStill(job);
  CloseSteps(job, *job.run, -1, actions);
  CountRestart(job);
  BackToQueue(job, PhaseEvent::kGoesOnAnew,
              absl::StrCat("waits to go on ", FromWhere(job.status), "; ",
                           job.run->stopped()->cause),
              now, actions);
}

// Where none was left, it was decided that it goes on at no such cost; a
// scheduler since then may not know why.
void RunControl::CountRestart(Job& job) {
  if (!HasRestartsLeft(EndOf(job))) return;
  job.status.set_restarts(job.status.restarts() + 1);
}

std::string RunControl::WhyNotAgain(const Job& job) const {
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

void RunControl::AwaitPlaces(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  LetGo(job);
  if (MovesOn(job)) return AwaitPlacesNow(job, now, actions);
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
    return FinishIfLetGo(job, now, actions);
  }
  AwaitPlacesNow(job, now, actions);
}

void RunControl::AwaitPlacesNow(Job& job, absl::Time now, Actions& actions) {
  LeaveBadMachines(job, actions);
  DropOlderCopies(job, actions);
  WaitInPlaces(job, now);
  CloseSteps(job, *job.run, -1, actions);
  TakePlaces(job, now, actions);
}

void RunControl::WaitInPlaces(Job& job, absl::Time now) {
  jobs_.Enter(job, PhaseEvent::kGoesOn,
              phase::AwaitPlaces({*job.run->stopped(), now}));
}

// It was well, and would be, but for the disk: that is no failure of its steps,
// but asked for again and again it would be one of the job.
void RunControl::GoOnUnmoved(Job& job, absl::Time now, Actions& actions) {
  jobs_.AddEvent(job,
                 absl::StrCat("goes on as it is, for it could not be saved to "
                              "move; that is tried again in ",
                              absl::FormatDuration(job.move_pause)),
                 now, actions);
  PauseMoves(job, now);
  AwaitPlacesNow(job, now, actions);
}

void RunControl::RecoverWaiting(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run != nullptr && job->run->between_attempts()) {
      TakePlaces(*job, now, actions);
    }
  }
}

void RunControl::TakePlaces(Job& job, absl::Time now, Actions& actions) {
  Run& run = *job.run;
  if (MovesOn(job)) {
    if (run.is<phase::AwaitPlaces>()) Narrow(job, now, actions);
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
    return Narrow(job, now, actions);
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

std::string RunControl::OrGoesOnWith(const Job& job, absl::Time now) const {
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

void RunControl::LetLeave(Job& job, const std::set<int>& ranks,
                          Actions& actions) {
  for (const int rank : ranks) {
    if (job.run->SavesCopiesWith(rank)) {
      jobs_.Enter(job, PhaseEvent::kCopiesGivenUp,
                  phase::AwaitPlaces(*job.run->between()));
    }
    RankSeat& seat = job.run->ranks[rank];
    SendGiveUpKept(job, rank, actions);
    workers_.Release(seat.worker);
    seat.Lose();
  }
}

void RunControl::StartAgain(Job& job, const std::vector<const Worker*>& workers,
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
  BeginRun(job, PhaseEvent::kPlacesTaken, *job.plan, now);
  Run& run = *job.run;
  run.follows = FollowsAttempt{.let_go = before->between()->let_go};
  run.wrong_before = before->WrongBeforeNext();
  run.wrong_workers = before->wrong_workers;
  for (size_t r = 0; r < workers.size(); ++r) {
    run.ranks[r].kept = before->ranks[r].kept;
    run.ranks[r].kept_by_attempt = before->ranks[r].kept_by_attempt;
  }
  if (recovery.has_value()) run.follows->resumes_at = recovery->state().step();
  CloseSteps(job, *before, run.follows->resumes_at, actions);
  run.steps.StartAfter(job.status.steps_done());
  if (before->CostsRestart()) CountRestart(job);
  job.status.clear_workers();
  Seat(job, workers, now);
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
  Perform(job, "", actions);
}

// What was reported of steps that will not run again is all that there is.
void RunControl::CloseSteps(Job& job, Run& run, int64_t resumes_at,
                            Actions& actions) {
  if (resumes_at < 0) resumes_at = NewestCheckpoint(job.status);
  for (GatheredStep& step : run.steps.CloseThrough(resumes_at)) {
    AddGathered(job, std::move(step), actions);
  }
}

void RunControl::SayRecovered(Job& job, absl::Time now, Actions& actions) {
  const Run& run = *job.run;
  const int64_t begins = run.ranks[0].first_step;
  const absl::Time since = job.stands_since;
  const std::string times =
      since == absl::InfinitePast() || !run.follows.has_value()
          ? "recovered"
          : absl::StrCat("recovered in ", SecondsWords(now - since), " (",
                         SecondsWords(run.follows->let_go - since),
                         " until all ranks had let go, ",
                         SecondsWords(run.started - run.follows->let_go),
                         " for workers to take the places, ",
                         SecondsWords(now - run.started), " to begin)");
  jobs_.AddEvent(
      job, absl::StrCat(times, ": goes on with step ", begins, RunAgain(job)),
      now, actions);
  GoOn(job, now, actions);
}

// Since the first run that ended so, where others followed that were not ready.
void RunControl::StandStill(Job& job) {
  if (job.stands_since != absl::InfinitePast() || job.stands_longer) return;
  job.stands_since = job.run->stopped()->since;
}

void RunControl::GoOn(Job& job, absl::Time now, Actions& actions) {
  job.stands_longer = false;
  const absl::Time since =
      std::exchange(job.stands_since, absl::InfinitePast());
  if (since == absl::InfinitePast()) return;
  job.status.set_stood_seconds(job.status.stood_seconds() +
                               absl::ToDoubleSeconds(now - since));
  jobs_.Save(job, actions);
}

}  // namespace troupe
