#include "scheduler/planner/check_memory.h"

#include <algorithm>

#include "proto/plan/check_program.h"
#include "scheduler/simulate/gpu_scratch.h"

namespace troupe {

absl::Status CheckMemory(const Plan& plan,
                         const std::vector<WorkerDescription>& workers) {
  return CheckBudgets(plan, workers, GpuScratchItems(plan));
}

std::vector<absl::Status> CheckMemoryOfRanks(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  return CheckBudgetsOfRanks(plan, workers, GpuScratchItems(plan));
}

absl::optional<int64_t> LeastOfDevice(
    const Plan& plan, const std::vector<WorkerDescription>& workers) {
  int64_t scratch = 0;
  for (const MemoryItem& item : GpuScratchItems(plan)) scratch += item.bytes();
  absl::optional<int64_t> least;
  for (const WorkerDescription& worker : workers) {
    if (worker.budgets().empty()) continue;
    int64_t bytes = worker.has_gpu() ? -scratch : 0;
    for (const TierBudget& budget : worker.budgets()) {
      if (budget.tier() == DEVICE) bytes += budget.bytes();
    }
    bytes = std::max<int64_t>(bytes, 0);
    least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

}  // namespace troupe
