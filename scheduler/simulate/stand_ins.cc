#include "scheduler/simulate/stand_ins.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace troupe {
namespace {

// What a machine is, whatever it measured: the GPU, or the threads.
using Kind = std::pair<std::string, int>;
Kind KindOf(const WorkerDescription& worker) {
  return {worker.gpu().name(), worker.has_gpu() ? 0 : worker.threads()};
}

// Of all its products the best rate; none: as if it were the slowest.
double BestRate(const WorkerDescription& worker) {
  double best = 0;
  for (const MatmulRate& rate : worker.calibration().matmul()) {
    best = std::max(best, rate.flops_per_second());
  }
  return best;
}

}  // namespace

std::vector<int> StandIns(const std::vector<WorkerDescription>& workers) {
  std::set<std::string> calibrations;
  std::map<Kind, int> slowest;
  std::vector<int> own;
  for (int i = 0; i < static_cast<int>(workers.size()); ++i) {
    own.push_back(i);
    calibrations.insert(workers[i].calibration().SerializeAsString());
    int& of_kind = slowest.try_emplace(KindOf(workers[i]), i).first->second;
    if (BestRate(workers[i]) < BestRate(workers[of_kind])) of_kind = i;
  }
  if (calibrations.size() <= kCalibrationsMax) return own;
  std::vector<int> stand_ins;
  for (const WorkerDescription& worker : workers) {
    stand_ins.push_back(slowest.at(KindOf(worker)));
  }
  return stand_ins;
}

}  // namespace troupe
