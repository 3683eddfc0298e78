#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/one_line.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/placement.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/wait_reason.h"
#include "scheduler/cluster/worker_preference.h"

namespace troupe {
namespace {

bool HasSeat(const Run& run, const std::string& worker) {
  return std::any_of(
      run.ranks.begin(), run.ranks.end(),
      [&worker](const RankSeat& seat) { return seat.worker_name == worker; });
}

// Whether the attempt is past its start. One that an earlier scheduler began
// may be, if that has stored that it ever was.
bool MayHaveTrained(const Job& job) {
  const Run& run = *job.run;
  return run.ranks.all_ready() || (run.restored != absl::InfinitePast() &&
                                   job.status.started_unix_ms() != 0);
}

}  // namespace

// The part of RunControl that keeps one bad worker from failing every job that
// it gets: whose fault a failure was, and the start on other workers.

void RunControl::BlameWorker(Job& job, const RankSeat& seat,
                             const std::string& why, absl::Time now,
                             Actions& actions) {
  if (job.cancelled || job.ended()) return;
  if (seat.ready() && now - job.run->started >= limits_.does_well_after) {
    return workers_.DidWell(seat.worker_name);
  }
  workers_.Doubt(seat.worker_name);
  const std::string line = OneLine(why, limits_.reason_bytes_max);
  // It trained there before that: the job itself is well.
  if (job.run->ranks.all_ready()) {
    return CountLocalFailure(job, seat.worker_name, line, now, actions);
  }
  job.failed_on[seat.worker_name] = line;
}

void RunControl::SettleBlame(Job& job, absl::Time now, Actions& actions) {
  job.failed_starts = 0;
  job.avoid_pause = Job::kFirstPause;
  for (const auto& [worker, why] : std::exchange(job.failed_on, {})) {
    if (HasSeat(*job.run, worker)) continue;
    CountLocalFailure(job, worker, why, now, actions);
  }
}

void RunControl::CountLocalFailure(Job& job, const std::string& worker,
                                   const std::string& why, absl::Time now,
                                   Actions& actions) {
  if (!workers_.AddLocalFailure(worker, job.id, why)) return;
  jobs_.AddEvent(job,
                 absl::StrCat(worker,
                              " is set aside: several jobs failed on "
                              "it, and not elsewhere"),
                 now, actions);
}

// One that recovers keeps its plan, and only the place of the worker is filled
// again.
bool RunControl::MayStartElsewhere(const Job& job) const {
  const Run& run = *job.run;
  if (job.cancelled || job.ended() || !job.defect.empty() ||
      job.status.intent() == INTENT_CANCEL || MayRecover(job) ||
      MayHaveTrained(job) || run.follows() || run.ranks.awaits() ||
      !IsOfWorker(run.blame) ||
      (!run.tries_again && job.failed_starts + 1 >= limits_.starts_max)) {
    return false;
  }
  const bool blamed = std::any_of(
      run.ranks.begin(), run.ranks.end(), [&job](const RankSeat& seat) {
        return job.failed_on.count(seat.worker_name) > 0;
      });
  return blamed && MostOfOneKind(Without(workers_.InService(),
                                         job.failed_on)) >= job.least_ranks();
}

std::string RunControl::OtherStarts(const Job& job) {
  std::vector<std::string> others;
  for (const auto& [worker, why] : job.failed_on) {
    if (!HasSeat(*job.run, worker)) others.push_back(worker);
  }
  if (others.empty()) return "";
  return absl::StrCat("; its start failed on ", NameList(std::move(others)),
                      ", too");
}

// There the rank would fail again, another worker could take its place, and
// others have copies of its state. Where they have not, one more attempt is
// made there; then the copies are saved, or else lost (LeavingRanks).
void RunControl::LeaveBadMachines(Job& job, Actions& actions) {
  for (int rank = 0; rank < static_cast<int>(job.run->ranks.size()); ++rank) {
    if (!IsBetterElsewhere(job, rank)) continue;
    if (!LosesSteps(job, GoneWith(job, rank))) Free(job, rank, actions);
  }
}

// Busy workers count where the job's start failed: they will be free one day,
// where another start fails at once.
bool RunControl::IsBetterElsewhere(const Job& job, int rank) const {
  const RankSeat& seat = job.run->ranks[rank];
  if (!seat.machine_fails || seat.state != RankSeat::kHeld) return false;
  const bool never_again = job.failed_on.count(seat.worker_name) > 0;
  return OthersCouldTake(job, PlacesWith(*job.run, GoneWith(job, rank)),
                         never_again ? workers_.InService() : workers_.Idle());
}

std::set<int> RunControl::GoneWith(const Job& job, int rank) const {
  std::set<int> gone = RanksAskedToLeave(job);
  gone.insert(rank);
  return gone;
}

void RunControl::Free(Job& job, int rank, Actions& actions) {
  RankSeat& seat = job.run->ranks[rank];
  SendGiveUpKept(job, rank, actions);
  seat.kept.clear();
  seat.state = RankSeat::kEnded;
  workers_.Release(seat.worker);
}

std::vector<VacantPlace> RunControl::PlacesWith(const Run& run,
                                                const std::set<int>& ranks) {
  std::vector<VacantPlace> places;
  for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
    const RankSeat& seat = run.ranks[rank];
    if (seat.taken() && ranks.count(rank) == 0) continue;
    places.push_back({.rank = rank, .lost = seat.machine});
  }
  return places;
}

FailedStarts RunControl::AvoidedInPlaces(
    const Job& job, const std::vector<VacantPlace>& places) const {
  const bool enough = !job.failed_on.empty() &&
                      OthersCouldTake(job, places, workers_.InService());
  return enough ? job.failed_on : FailedStarts();
}

bool RunControl::OthersCouldTake(const Job& job,
                                 const std::vector<VacantPlace>& places,
                                 const std::vector<const Worker*>& workers) {
  std::vector<const Worker*> others;
  for (const Worker* worker :
       Without(Without(workers, job.run->wrong_workers), job.failed_on)) {
    const bool has_seat = worker->status.job() == job.id.value();
    if (!has_seat) others.push_back(worker);
  }
  const std::vector<const Worker*> filled = FillPlaces(
      places, job.run->handed->plan->prediction(), others, job.failed_on);
  return std::count(filled.begin(), filled.end(), nullptr) == 0;
}

std::string RunControl::WhatItAvoids(const Job& job,
                                     const FailedStarts& avoided) {
  if (avoided.empty()) return "";
  std::string text;
  for (const auto& [worker, why] : avoided) {
    absl::StrAppend(&text, "; it does not take ", worker,
                    ", where its start failed: ", why);
  }
  return absl::StrCat(text, WhenItTriesThatAgain(TriesAgainAt(job)),
                      HowToStartThereAgain(avoided));
}

void RunControl::TryAgainWhereStartsFailed(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr || !job->run->is<phase::AwaitPlaces>()) continue;
    if (job->run->ranks.awaits() || now < TriesAgainAt(*job)) continue;
    TryAgainWhereItsStartFailed(*job, now, actions);
  }
}

// Others that are busy may be so for days, or keep what they have for a job
// that avoids the same worker.
void RunControl::TryAgainWhereItsStartFailed(Job& job, absl::Time now,
                                             Actions& actions) {
  const Run& run = *job.run;
  const std::vector<VacantPlace> places = PlacesWith(run, LeavingRanks(job));
  const FailedStarts avoided = AvoidedInPlaces(job, places);
  if (avoided.empty()) return;
  const std::vector<const Worker*> filled =
      FillPlaces(places, run.handed->plan->prediction(),
                 Without(workers_.Idle(), run.wrong_workers), job.failed_on);
  if (std::count(filled.begin(), filled.end(), nullptr) > 0) return;
  AvoidNoMore(job, avoided, now, actions);
  TakePlaces(job, now, actions);
  if (!job.run->between_attempts()) job.run->tries_again = true;
}

void RunControl::AvoidNoMore(Job& job, const FailedStarts& avoided,
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

void RunControl::StartElsewhere(Job& job, absl::Time now, Actions& actions) {
  if (!job.run->tries_again) ++job.failed_starts;
  const std::string cause = job.run->cause;
  LetGo(job);
  ReleaseAll(job, actions);
  BackToQueue(job, PhaseEvent::kGoesOnAnew,
              absl::StrCat("is tried on other workers; ", cause), now, actions);
}

}  // namespace troupe
