#include "scheduler/simulate/gpu_scratch.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "proto/base/gpu_limits.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;
// The pool's steps are the driver's affair; these are not smaller.
constexpr int64_t kPoolStepBytes = int64_t{32} << 20;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

bool Multiplies(const Plan& plan) {
  return std::any_of(
      plan.units().begin(), plan.units().end(),
      [](const Unit& unit) { return unit.forward().matmul_flops() > 0; });
}

// Columns of the widest product with a bias, or 0.
int64_t WidestBias(const Plan& plan) {
  int64_t widest = 0;
  for (const Unit& unit : plan.units()) {
    for (const Parameter& parameter : unit.parameters()) {
      if (parameter.shape_size() != 1) continue;
      if (!absl::EndsWith(parameter.name(), "bias")) continue;
      widest = std::max<int64_t>(widest, parameter.shape(0));
    }
  }
  return widest;
}

int64_t KernelScratchBytes(const Plan& plan) {
  constexpr int64_t kSumsOfNorm = 2;     // of scale and shift
  constexpr int64_t kBytesOfToken = 20;  // sorted, with its row, twice; counts
  const TrainingSpec& training = plan.job().training();
  const ModelSpec& model = plan.job().model();
  const int64_t rows =
      int64_t{training.micro_batch_size()} * training.sequence_length();
  const int64_t biased = WidestBias(plan);
  const int64_t columns =
      std::max<int64_t>(biased, kSumsOfNorm * model.hidden_size());
  const int64_t attention = rows * model.num_attention_heads() * kF32Bytes;
  const int64_t sums = kGpuSumPartsMax * columns * kF32Bytes;
  const int64_t products =
      ComputeType(training) == BF16 ? rows * biased * kF32Bytes : 0;
  return RoundUp(std::max({attention, sums, products, rows * kBytesOfToken}),
                 kPoolStepBytes);
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
          Item("kernel_scratch", KernelScratchBytes(plan))};
}

}  // namespace troupe
