#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "scheduler/cluster/effects.h"
#include "scheduler/cluster/placement.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/run_control.h"
#include "scheduler/cluster/run_words.h"
#include "scheduler/cluster/wait_reason.h"
#include "scheduler/cluster/worker_preference.h"

namespace troupe {
namespace {

// Whether the attempt is past its start. One that an earlier scheduler began
// may be, if that has stored that it ever was.
bool MayHaveTrained(const Job& job) {
  const Run& run = *job.run;
  return run.ranks.all_ready() || (run.restored != absl::InfinitePast() &&
                                   job.status.started_unix_ms() != 0);
}

}  // namespace

// The part of RunControl that starts a job on other workers than those where it
// failed (worker_blame.h).

// One that recovers keeps its plan, and only the place of the worker is filled
// again.
bool RunControl::MayStartElsewhere(const Job& job) const {
  const Run& run = *job.run;
  if (job.cancelled || job.ended() || !job.defect.empty() ||
      job.status.intent() == INTENT_CANCEL || MayRecover(job) ||
      MayHaveTrained(job) || run.follows.has_value() ||
      run.between_attempts() || run.ranks.awaits() ||
      !IsOfWorker(run.blame()) ||
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

// There the rank would fail again, another worker could take its place, and
// others have copies of its state. Where they have not, one more attempt is
// made there; then the copies are saved, or else lost (LeavingRanks).
void RunControl::LeaveBadMachines(Job& job, Actions& actions) {
  for (int rank = 0; rank < static_cast<int>(job.run->ranks.size()); ++rank) {
    if (!IsBetterElsewhere(job, rank, workers_)) continue;
    if (!LosesSteps(job, GoneWith(job, rank, workers_)))
      Free(job, rank, actions);
  }
}

void RunControl::Free(Job& job, int rank, Actions& actions) {
  RankSeat& seat = job.run->ranks[rank];
  SendGiveUpKept(job, rank, actions);
  seat.kept.clear();
  seat.state = RankSeat::kEnded;
  workers_.Release(seat.worker);
}

void RunControl::TryAgainWhereStartsFailed(absl::Time now, Actions& actions) {
  for (const auto& [id, job] : jobs_.all()) {
    if (job->run == nullptr || !job->run->is<phase::AwaitPlaces>()) continue;
    if (now < TriesAgainAt(*job)) continue;
    TryAgainWhereItsStartFailed(*job, now, actions);
  }
}

// Others that are busy may be so for days, or keep what they have for a job
// that avoids the same worker.
void RunControl::TryAgainWhereItsStartFailed(Job& job, absl::Time now,
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
  const std::string cause = job.run->stopped()->cause;
  LetGo(job);
  BackToQueue(job, PhaseEvent::kGoesOnAnew,
              absl::StrCat("is tried on other workers; ", cause), now, actions);
}

}  // namespace troupe
