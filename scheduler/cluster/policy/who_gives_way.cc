#include "scheduler/cluster/policy/who_gives_way.h"

#include <algorithm>
#include <utility>

#include "scheduler/cluster/place_ranks.h"
#include "scheduler/cluster/worker_preference.h"

namespace troupe {
namespace {

bool MayGiveWay(const WaitingJob& job) {
  return job.has_waited && job.loses_nothing && !job.holds.empty();
}

bool Fill(const WaitingJob& job, const std::vector<VacantPlace>& places,
          std::vector<const Worker*> free) {
  const std::vector<const Worker*> filled =
      FillPlaces(places, *job.prediction, Without(std::move(free), job.avoids));
  return std::none_of(filled.begin(), filled.end(),
                      [](const Worker* worker) { return worker == nullptr; });
}

bool Suffices(const WaitingJob& job, std::vector<const Worker*> free) {
  return Fill(job, job.vacant, std::move(free));
}

// As a queued job it would be served first, and hold the other one back.
bool StandsBefore(const WaitingJob& job, const Contest& contest) {
  return job.job < contest.next->job && Fill(job, job.places, contest.alive);
}

// Idle workers, and those of all that may give way, but for this job.
template <typename Gives>
std::vector<const Worker*> FreeAtMost(const Contest& contest,
                                      const Gives& gives) {
  std::vector<const Worker*> free = contest.idle;
  for (const WaitingJob& job : contest.waiting) {
    if (gives(job)) free.insert(free.end(), job.holds.begin(), job.holds.end());
  }
  return free;
}

int CountOfKind(const std::vector<const Worker*>& workers, bool gpu) {
  return static_cast<int>(std::count_if(
      workers.begin(), workers.end(), [gpu](const Worker* worker) {
        return worker->status.description().has_gpu() == gpu;
      }));
}

// With GPUs or without: of these there are enough, and more free than idle.
absl::optional<bool> KindThatHelps(const NextInQueue& next,
                                   const std::vector<const Worker*>& idle,
                                   const std::vector<const Worker*>& free) {
  for (const bool gpu : {true, false}) {
    const int at_most = CountOfKind(free, gpu);
    if (at_most >= next.ranks && at_most > CountOfKind(idle, gpu)) return gpu;
  }
  return absl::nullopt;
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
    if (!helped.has_waited || Suffices(helped, contest.idle) ||
        !Suffices(helped, FreeAtMost(contest, gives))) {
      continue;
    }
    if (const auto way = Youngest(contest, helped.job, gives)) return way;
  }
  if (!contest.next.has_value()) return absl::nullopt;
  const NextInQueue& next = *contest.next;
  // For one that idle workers are enough for, others will not make it start.
  const auto takes = [&next](std::vector<const Worker*> workers) {
    return Without(std::move(workers), next.avoids);
  };
  const std::vector<const Worker*> idle = takes(contest.idle);
  if (!next.idle_too_small && MostOfOneKind(idle) >= next.ranks) {
    return absl::nullopt;
  }
  const auto gives = [&](const WaitingJob& job) {
    return MayGiveWay(job) && !StandsBefore(job, contest);
  };
  const absl::optional<bool> gpu =
      KindThatHelps(next, idle, takes(FreeAtMost(contest, gives)));
  if (!gpu.has_value()) return absl::nullopt;
  return Youngest(contest, next.job, [&](const WaitingJob& job) {
    return gives(job) && CountOfKind(job.holds, *gpu) > 0;
  });
}

}  // namespace troupe
