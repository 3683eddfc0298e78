#include "scheduler/cluster/policy/who_gives_way.h"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

bool MayGiveWay(const WaitingJob& job) {
  return job.has_waited && job.loses_nothing && !job.holds.empty();
}

// As a queued job it would be served first, and hold the other one back.
bool StandsBefore(const WaitingJob& job, const Contest& contest) {
  return job.job < contest.next->job && job.ranks <= contest.alive;
}

bool Suffices(const WaitingJob& job, std::vector<const Worker*> free) {
  const auto avoided = [&](const Worker* worker) {
    return job.avoids.count(worker->name()) > 0;
  };
  free.erase(std::remove_if(free.begin(), free.end(), avoided), free.end());
  const std::vector<const Worker*> filled =
      FillPlaces(job.vacant, *job.prediction, std::move(free));
  return std::none_of(filled.begin(), filled.end(),
                      [](const Worker* worker) { return worker == nullptr; });
}

// Idle workers, and those of all who may give way, but for this job.
template <typename Gives>
std::vector<const Worker*> FreeAtMost(const Contest& contest,
                                      const Gives& gives) {
  std::vector<const Worker*> free = contest.idle;
  for (const WaitingJob& job : contest.waiting) {
    if (gives(job)) free.insert(free.end(), job.holds.begin(), job.holds.end());
  }
  return free;
}

template <typename Gives>
absl::optional<GivesWay> Youngest(const Contest& contest, JobId to,
                                  const Gives& gives) {
  const auto youngest =
      std::find_if(contest.waiting.rbegin(), contest.waiting.rend(), gives);
  if (youngest == contest.waiting.rend()) return absl::nullopt;
  return GivesWay{.job = youngest->job, .to = to};
}

}  // namespace

absl::optional<GivesWay> WhoGivesWay(const Contest& contest) {
  for (const WaitingJob& helped : contest.waiting) {
    const auto gives = [&](const WaitingJob& other) {
      return other.job != helped.job && MayGiveWay(other);
    };
    if (!helped.has_waited || !Suffices(helped, FreeAtMost(contest, gives))) {
      continue;
    }
    if (const auto way = Youngest(contest, helped.job, gives)) return way;
  }
  // For one that idle workers are enough for, others will not make it start.
  if (!contest.next.has_value() ||
      static_cast<int>(contest.idle.size()) >= contest.next->ranks) {
    return absl::nullopt;
  }
  const auto gives = [&](const WaitingJob& job) {
    return MayGiveWay(job) && !StandsBefore(job, contest);
  };
  const std::vector<const Worker*> free = FreeAtMost(contest, gives);
  if (static_cast<int>(free.size()) < contest.next->ranks) return absl::nullopt;
  return Youngest(contest, contest.next->job, gives);
}

}  // namespace troupe
