#include "scheduler/simulate/seats.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace troupe {
namespace {

struct Demand {
  double cores = 0;   // that there are; 0: not said
  double wanted = 0;  // by all ranks together
  int processor = Seats::kOwn;
};

// A host's name may be a GPU's.
using SeatPlace = std::pair<bool, std::string>;
SeatPlace PlaceOf(const WorkerDescription& worker) {
  return worker.has_gpu() ? SeatPlace(true, worker.gpu().uuid())
                          : SeatPlace(false, worker.host());
}

double CoresWanted(const WorkerDescription& worker) {
  return worker.has_gpu() ? 1 : std::max(1, worker.threads());
}

}  // namespace

Seats Seats::Of(const RankClasses& classes) const {
  // By processor: how many of each class sit there, by first ranks.
  std::vector<std::map<int, int>> company(processors.size());
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].processor == kOwn) continue;
    ++company[ranks[r].processor][classes.FirstLike(static_cast<int>(r))];
  }
  Seats seats;
  seats.ranks.resize(ranks.size());
  std::map<std::map<int, int>, int> known;  // processors of equal company
  for (const int first : classes.first_ranks()) {
    const Seat& seat = ranks[first];
    seats.ranks[first] = seat;
    if (seat.processor == kOwn) continue;
    const std::map<int, int>& with = company[seat.processor];
    const auto [found, is_new] =
        known.try_emplace(with, static_cast<int>(seats.processors.size()));
    if (is_new) seats.processors.push_back(processors[seat.processor]);
    seats.ranks[first] = {.processor = found->second,
                          .cores = seat.cores * with.at(first)};
  }
  return seats;
}

double Seats::FairShare(int rank) const {
  const int processor = ranks.at(rank).processor;
  if (processor == kOwn) return 1;
  const Crowded& crowded = processors[processor];
  return std::min(1.0, crowded.cores / crowded.wanted);
}

Seats SeatsOf(absl::Span<const WorkerDescription> workers, int lanes) {
  std::map<SeatPlace, Demand> demands;
  for (const WorkerDescription& worker : workers) {
    Demand& demand = demands[PlaceOf(worker)];
    demand.wanted += CoresWanted(worker);
    const int cores = worker.has_gpu() ? 1 : worker.host_cores();
    demand.cores = std::max<double>(demand.cores, cores);
  }
  Seats seats;
  for (const WorkerDescription& worker : workers) {
    Demand& demand = demands[PlaceOf(worker)];
    const double at_once = demand.wanted * (worker.has_gpu() ? 1 : lanes);
    const bool crowded = demand.cores > 0 && at_once > demand.cores;
    if (crowded && demand.processor == Seats::kOwn) {
      demand.processor = static_cast<int>(seats.processors.size());
      seats.processors.push_back(
          {.cores = demand.cores, .wanted = demand.wanted});
    }
    seats.ranks.push_back(
        {.processor = demand.processor, .cores = CoresWanted(worker)});
  }
  return seats;
}

}  // namespace troupe
