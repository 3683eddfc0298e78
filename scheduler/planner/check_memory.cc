#include "scheduler/planner/check_memory.h"

#include <algorithm>

#include "proto/plan/check_program.h"
#include "proto/plan/group_staging.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/choose_backends.h"
#include "scheduler/simulate/gpu_scratch.h"

namespace troupe {
namespace {

int64_t ScratchBytes(const Plan& plan) {
  int64_t scratch = 0;
  for (const MemoryItem& item : GpuScratchItems(plan)) scratch += item.bytes();
  return scratch;
}

// For slots; nullopt: the worker does not say.
absl::optional<int64_t> DeviceBytes(const WorkerDescription& worker,
                                    int64_t scratch) {
  if (worker.budgets().empty()) return absl::nullopt;
  int64_t bytes = worker.has_gpu() ? -scratch : 0;
  for (const TierBudget& budget : worker.budgets()) {
    if (budget.tier() == DEVICE) bytes += budget.bytes();
  }
  return std::max<int64_t>(bytes, 0);
}

void TakeLeast(const absl::optional<int64_t>& bytes,
               absl::optional<int64_t>& least) {
  if (!bytes.has_value()) return;
  least = std::min(least.value_or(*bytes), *bytes);
}

// What ranks on GPUs need beside their slots.
class BesideSlots {
 public:
  // Borrows the plan, which need not have carriers yet.
  BesideSlots(const Plan& plan, const std::vector<WorkerDescription>& workers)
      : scratch_(GpuScratchItems(plan)),
        groups_(GroupsOn(plan, workers)),
        staging_(plan, groups_) {}

  MemoryBeside OnGpus() {
    return [this](const Role& role, int rank) {
      std::vector<MemoryItem> items = scratch_;
      const int64_t staged = staging_.BytesOf(role, rank);
      if (staged > 0) items.push_back(GroupStagingItem(staged));
      return items;
    };
  }

 private:
  // With carriers, where any may be staged.
  static Groups GroupsOn(const Plan& plan,
                         const std::vector<WorkerDescription>& workers) {
    if (static_cast<int>(workers.size()) < MeshSize(plan.mesh()) ||
        !AnyShareAGpu(workers)) {
      return {};
    }
    Groups groups = plan.groups();
    for (Group& group : groups) group.clear_carriers();
    ChooseBackends(workers, plan.mesh(), groups);
    return groups;
  }

  const std::vector<MemoryItem> scratch_;
  const Groups groups_;
  GroupStaging staging_;
};

}  // namespace

absl::Status CheckMemory(const Plan& plan,
                         const std::vector<WorkerDescription>& workers) {
  BesideSlots beside(plan, workers);
  return CheckBudgets(plan, workers, beside.OnGpus());
}

std::vector<absl::Status> CheckMemoryOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  BesideSlots beside(plan, workers);
  return CheckBudgetsOfRanks(plan, workers, beside.OnGpus());
}

absl::optional<int64_t> BytesForSlots(const Plan& plan,
                                      const WorkerDescription& worker) {
  return DeviceBytes(worker, ScratchBytes(plan));
}

absl::optional<int64_t> LeastOfDevice(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  const int64_t scratch = ScratchBytes(plan);
  absl::optional<int64_t> least;
  for (const WorkerDescription& worker : workers) {
    TakeLeast(DeviceBytes(worker, scratch), least);
  }
  return least;
}

std::vector<absl::optional<int64_t>> LeastOfDeviceByRole(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  const int64_t scratch = ScratchBytes(plan);
  std::vector<absl::optional<int64_t>> by_role;
  for (const Role& role : plan.roles()) {
    absl::optional<int64_t>& least = by_role.emplace_back();
    for (const size_t rank : RanksOf(plan.mesh(), role)) {
      if (rank >= workers.size()) {
        least = LeastOfDevice(plan, workers);
        break;
      }
      TakeLeast(DeviceBytes(workers[rank], scratch), least);
    }
  }
  return by_role;
}

}  // namespace troupe
