#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/cluster/policy/copies_left.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/policy/who_gives_way.h"
#include "scheduler/cluster/policy/who_leaves.h"
#include "scheduler/cluster/run_control.h"

namespace troupe {

// The part of RunControl in which a job gives its workers to others: as one
// that goes on with fewer does, it is saved and queued (run_elastic.cc).

bool RunControl::LosesNothing(const Job& job, absl::Time now) const {
  return !CannotBeSaved(job) && (!CopiesToSave(job).has_value() ||
                                 (MayMove(job) && !IsPaused(job, now)));
}

WaitingJob RunControl::AsWaiting(const Job& job, absl::Time now) const {
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

bool RunControl::GiveWay(const absl::optional<NextInQueue>& next,
                         absl::Time now, Actions& actions) {
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
