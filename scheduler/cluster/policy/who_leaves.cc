#include "scheduler/cluster/policy/who_leaves.h"

#include <algorithm>
#include <string>

#include "proto/plan/copies.h"

namespace troupe {
namespace {

// Whether those of the workers that are not the job's, and on which its start
// has not failed, have room for ranks in these places.
bool OthersCouldTake(const Job& job, const std::vector<VacantPlace>& places,
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

}  // namespace

std::set<int> RanksAskedToLeave(const Job& job, const WorkerTable& workers) {
  std::set<int> asked;
  for (size_t r = 0; r < job.run->ranks.size(); ++r) {
    const RankSeat& seat = job.run->ranks[r];
    if (!seat.taken() || seat.awaited()) continue;
    if (workers.Find(seat.worker)->leaving) asked.insert(static_cast<int>(r));
  }
  return asked;
}

std::set<int> GoneWith(const Job& job, int rank, const WorkerTable& workers) {
  std::set<int> gone = RanksAskedToLeave(job, workers);
  gone.insert(rank);
  return gone;
}

// Busy workers count where the job's start failed: they will be free one day,
// where another start fails at once.
bool IsBetterElsewhere(const Job& job, int rank, const WorkerTable& workers) {
  const RankSeat& seat = job.run->ranks[rank];
  if (!seat.machine_fails || seat.state != RankSeat::kHeld) return false;
  const bool never_again = job.failed_on.count(seat.worker_name) > 0;
  return OthersCouldTake(job,
                         PlacesWith(*job.run, GoneWith(job, rank, workers)),
                         never_again ? workers.InService() : workers.Idle());
}

std::set<int> LeavingRanks(const Job& job, const WorkerTable& workers) {
  std::set<int> leaving = RanksAskedToLeave(job, workers);
  if (job.losses_in_step <= 1) return leaving;
  for (size_t r = 0; r < job.run->ranks.size(); ++r) {
    const RankSeat& seat = job.run->ranks[r];
    if (!seat.taken() || seat.awaited()) continue;
    const int rank = static_cast<int>(r);
    if (IsBetterElsewhere(job, rank, workers)) leaving.insert(rank);
  }
  return leaving;
}

std::vector<VacantPlace> PlacesWith(const Run& run,
                                    const std::set<int>& ranks) {
  const Plan& plan = *run.handed->plan;
  std::vector<std::string> hosts;
  for (const RankSeat& seat : run.ranks) hosts.push_back(seat.machine.host());
  std::vector<VacantPlace> places;
  for (int rank = 0; rank < static_cast<int>(run.ranks.size()); ++rank) {
    const RankSeat& seat = run.ranks[rank];
    if (seat.taken() && ranks.count(rank) == 0) continue;
    VacantPlace& place = places.emplace_back();
    place.rank = rank;
    place.lost = seat.machine;
    if (KeepsCopies(plan.job(), plan.mesh())) {
      place.copies_on = HostsOfCopies(plan, rank, hosts);
    }
  }
  return places;
}

FailedStarts AvoidedInPlaces(const Job& job,
                             const std::vector<VacantPlace>& places,
                             const WorkerTable& workers) {
  const bool enough = !job.failed_on.empty() &&
                      OthersCouldTake(job, places, workers.InService());
  return enough ? job.failed_on : FailedStarts();
}

}  // namespace troupe
