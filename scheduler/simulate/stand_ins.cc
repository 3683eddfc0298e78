#include "scheduler/simulate/stand_ins.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

namespace troupe {
namespace {

// What a machine is, whatever it measured: its device, the GPU or the threads.
using Kind = std::tuple<std::string, std::string, int>;
Kind KindOf(const WorkerDescription& worker) {
  return {worker.calibration().device(), worker.gpu().name(),
          worker.has_gpu() ? 0 : worker.threads()};
}

}  // namespace

double BestProductRate(const Calibration& calibration, ElementType type) {
  double best = 0;
  for (const MatmulRate& rate : calibration.matmul()) {
    if (rate.dtype() == type) best = std::max(best, rate.flops_per_second());
  }
  return best;
}

std::vector<int> StandIns(absl::Span<const WorkerDescription> workers,
                          ElementType type) {
  std::set<std::string> calibrations;
  std::map<Kind, int> slowest;
  std::vector<int> own;
  for (int i = 0; i < static_cast<int>(workers.size()); ++i) {
    own.push_back(i);
    if (calibrations.size() <= kCalibrationsMax) {
      calibrations.insert(workers[i].calibration().SerializeAsString());
    }
    int& of_kind = slowest.try_emplace(KindOf(workers[i]), i).first->second;
    if (BestProductRate(workers[i].calibration(), type) <
        BestProductRate(workers[of_kind].calibration(), type)) {
      of_kind = i;
    }
  }
  if (calibrations.size() <= kCalibrationsMax) return own;
  std::vector<int> stand_ins;
  for (const WorkerDescription& worker : workers) {
    stand_ins.push_back(slowest.at(KindOf(worker)));
  }
  return stand_ins;
}

}  // namespace troupe
