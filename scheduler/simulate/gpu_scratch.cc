#include "scheduler/simulate/gpu_scratch.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "proto/base/gpu_limits.h"
#include "proto/plan/memory.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

// The pool's steps are the driver's affair; these are not smaller.
constexpr int64_t kPoolStepBytes = int64_t{32} << 20;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool Multiplies(const Plan& plan) {
  return std::any_of(
      plan.units().begin(), plan.units().end(),
      [](const Unit& unit) { return unit.forward().matmul_flops() > 0; });
}

int64_t KernelScratchBytes(const Plan& plan) {
  const bool narrow = GradientType(plan.job().training()) != F32;
  int64_t most = 0;
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      const OpRules rules = RulesOf({table, op});
      most = std::max(most, rules.gpu_scratch_bytes);
      if (narrow) most = std::max(most, rules.gpu_narrow_gradient_bytes);
    }
  }
  return RoundUp(most, kPoolStepBytes);
}

MemoryItem Item(const std::string& name, int64_t bytes) {
  MemoryItem item;
  item.set_tier(DEVICE);
  item.set_item(name);
  item.set_bytes(bytes);
  return item;
}

}  // namespace

std::vector<MemoryItem> GpuScratchItems(const Plan& plan) {
  if (!Multiplies(plan)) return {};
  return {Item("product_workspace", kGpuProductWorkspaceBytes),
          Item(kKernelScratchItem, KernelScratchBytes(plan))};
}

}  // namespace troupe
