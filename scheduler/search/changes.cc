#include "scheduler/search/changes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "scheduler/simulate/gpu_link.h"
#include "scheduler/simulate/links.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

bool ScaleMemory(double factor, Changeable& what) {
  bool any = false;
  for (WorkerDescription& worker : what.workers) {
    for (TierBudget& budget : *worker.mutable_budgets()) {
      if (budget.tier() != DEVICE || budget.bytes() <= 0) continue;
      budget.set_bytes(std::llround(factor * budget.bytes()));
      any = true;
    }
  }
  return any;
}

bool HasSeveralHosts(const std::vector<WorkerDescription>& workers) {
  return std::any_of(workers.begin(), workers.end(),
                     [&](const WorkerDescription& worker) {
                       return worker.host() != workers.front().host();
                     });
}

bool HasHostOfSeveral(const std::vector<WorkerDescription>& workers) {
  std::map<std::string, int> hosts;
  return std::any_of(workers.begin(), workers.end(),
                     [&](const WorkerDescription& worker) {
                       return ++hosts[worker.host()] > 1;
                     });
}

bool ScaleBetweenHosts(double factor, Changeable& what) {
  if (!HasSeveralHosts(what.workers)) return false;
  for (WorkerDescription& worker : what.workers) {
    const auto scale = [factor](TopologyLink& link) {
      *link.mutable_rate() = Times(link.rate(), factor);
    };
    if (KnowsNetwork(worker)) {
      scale(*worker.mutable_network());
    } else if (worker.nics().empty()) {
      // Workers of a host share an adapter that is assumed.
      const LinkRate rate = NetworkOf(worker);
      Nic& assumed = *worker.add_nics();
      assumed.set_name("assumed");
      *assumed.mutable_link()->mutable_rate() = rate;
    }
    for (Nic& nic : *worker.mutable_nics()) scale(*nic.mutable_link());
  }
  return true;
}

// Of GPUs the model tells NCCL's link from their names; where it is another
// one, that of the calibration counts.
bool ScaleWithinHosts(double factor, Changeable& what) {
  if (!HasHostOfSeveral(what.workers)) return false;
  for (WorkerDescription& worker : what.workers) {
    Calibration rates = CompletedCalibration(worker.calibration());
    Calibration& changed = *worker.mutable_calibration();
    LinkRate within = rates.loopback();
    if (const auto nccl = NcclLinkOf(worker.gpu()); nccl.has_value()) {
      within = *nccl;
      worker.mutable_gpu()->clear_name();
      worker.mutable_gpu()->clear_link();
    }
    *changed.mutable_loopback() = Times(within, factor);
    *changed.mutable_shared_memory() = Times(rates.shared_memory(), factor);
  }
  return true;
}

constexpr InputChange kChanges[] = {
    {"10 % more device memory",
     [](Changeable& what) { return ScaleMemory(1.1, what); }, true},
    {"10 % less device memory",
     [](Changeable& what) { return ScaleMemory(0.9, what); }, true},
    {"twice the batch",
     [](Changeable& what) {
       TrainingSpec& training = *what.job.mutable_training();
       training.set_global_batch_size(2 * training.global_batch_size());
       return true;
     },
     true},
    {"half the batch",
     [](Changeable& what) {
       TrainingSpec& training = *what.job.mutable_training();
       if (training.global_batch_size() % 2 != 0) return false;
       training.set_global_batch_size(training.global_batch_size() / 2);
       return true;
     },
     true},
    {"twice the bandwidth between hosts",
     [](Changeable& what) { return ScaleBetweenHosts(2, what); }, false},
    {"half the bandwidth between hosts",
     [](Changeable& what) { return ScaleBetweenHosts(0.5, what); }, false},
    {"half the bandwidth within hosts",
     [](Changeable& what) { return ScaleWithinHosts(0.5, what); }, false},
};

}  // namespace

absl::Span<const InputChange> Changes() { return kChanges; }

}  // namespace troupe
