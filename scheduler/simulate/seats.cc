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
using Place = std::pair<bool, std::string>;
Place PlaceOf(const WorkerDescription& worker) {
  return worker.has_gpu() ? Place(true, worker.gpu().uuid())
                          : Place(false, worker.host());
}

double CoresWanted(const WorkerDescription& worker) {
  return worker.has_gpu() ? 1 : std::max(1, worker.threads());
}

}  // namespace

double Seats::FairShare(int rank) const {
  const int processor = ranks.at(rank).processor;
  if (processor == kOwn) return 1;
  return processors[processor].cores / processors[processor].wanted;
}

Seats SeatsOf(const std::vector<WorkerDescription>& workers) {
  std::map<Place, Demand> demands;
  for (const WorkerDescription& worker : workers) {
    Demand& demand = demands[PlaceOf(worker)];
    demand.wanted += CoresWanted(worker);
    const int cores = worker.has_gpu() ? 1 : worker.host_cores();
    demand.cores = std::max<double>(demand.cores, cores);
  }
  Seats seats;
  for (const WorkerDescription& worker : workers) {
    Demand& demand = demands[PlaceOf(worker)];
    const bool crowded = demand.cores > 0 && demand.wanted > demand.cores;
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
