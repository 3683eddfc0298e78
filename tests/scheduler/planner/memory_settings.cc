#include "tests/scheduler/planner/memory_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/plan/memory.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {

int Setting::changes() const {
  const Setting none;
  return (std::string(recompute) != none.recompute) +
         (std::string(optimizer) != none.optimizer) +
         (std::string(parameters) != none.parameters) +
         (std::string(gradients) != none.gradients) +
         (std::string(activations) != none.activations);
}

MemorySpec SpecOf(const Setting& setting) {
  MemorySpec memory;
  memory.mutable_recompute()->set_mode(setting.recompute);
  memory.set_optimizer(setting.optimizer);
  memory.set_parameters(setting.parameters);
  memory.set_gradients(setting.gradients);
  memory.set_activations(setting.activations);
  return memory;
}

JobSpec Job(const MemorySpec& memory) {
  // Copies of single units are small beside all units.
  JobSpec job = ExampleJob({.micro_batches = 4, .blocks = 12});
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_training()->set_global_batch_size(16);
  *job.mutable_memory() = memory;
  return job;
}

JobSpec AutoJob() {
  MemorySpec memory;
  memory.set_mode("auto");
  return Job(memory);
}

Room NeedOf(const Plan& plan) {
  Room need = {0, 0, 0};
  for (const Role& role : plan.roles()) {
    need.device = std::max(need.device, BytesIn(role, DEVICE));
    need.host = std::max(need.host, BytesIn(role, HOST));
    need.nvme = std::max(need.nvme, BytesIn(role, NVME));
  }
  return need;
}

Room NeedOf(const Setting& setting) {
  return NeedOf(ExamplePlan(Job(SpecOf(setting))));
}

std::vector<WorkerDescription> Workers(const Room& room, int count) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.clear_budgets();
    for (const auto& [tier, bytes] :
         {std::make_pair(DEVICE, room.device), std::make_pair(HOST, room.host),
          std::make_pair(NVME, room.nvme)}) {
      if (bytes == 0) continue;
      TierBudget& budget = *worker.add_budgets();
      budget.set_tier(tier);
      budget.set_bytes(bytes);
    }
  }
  return workers;
}

std::vector<Setting> AllSettings() {
  std::vector<Setting> all;
  for (const char* recompute : {"none", "selective", "full"}) {
    for (const char* optimizer : {"device", "host", "nvme"}) {
      for (const char* parameters : {"device", "host", "nvme"}) {
        for (const char* gradients : {"device", "host"}) {
          for (const char* activations : {"device", "host", "nvme"}) {
            all.push_back(
                {recompute, optimizer, parameters, gradients, activations});
          }
        }
      }
    }
  }
  return all;
}

bool FitsIn(const Room& need, const Room& room) {
  return need.device <= room.device && need.host <= room.host &&
         need.nvme <= room.nvme;
}

}  // namespace troupe
