#include "scheduler/simulate/scratch_bytes.h"

#include <algorithm>
#include <vector>

#include "proto/plan/precision.h"
#include "scheduler/simulate/product_rates.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Of one head of one sample, at the widest vectors, 16 lanes.
int64_t AttentionBytes(const JobSpec& job) {
  constexpr int64_t kBlock = 64;  // queries, or keys
  const ModelSpec& model = job.model();
  if (model.num_attention_heads() == 0) return 0;  // synthetic
  const int64_t head_dim = RoundUp(
      model.has_head_dim() ? model.head_dim()
                           : model.hidden_size() / model.num_attention_heads(),
      16);
  const int64_t length = RoundUp(job.training().sequence_length(), kBlock);
  const int64_t queries = 3 * length * (head_dim + 1);
  const int64_t sums = 2 * length * head_dim;
  const int64_t blocks = 5 * kBlock * head_dim + 4 * kBlock * kBlock;
  return kF32Bytes * (queries + sums + blocks);
}

// Rows of what is packed at once, and columns of what is not shared.
constexpr int64_t kPackedRows = 384;

// Of the product [m, k] x [k, n], for any m: what the threads share.
int64_t SharedPackedBytes(int64_t n, int64_t k, int threads) {
  constexpr int64_t kColumns = 9984, kRowsAtOnce = 48;
  constexpr int kThreadsMax = 10;
  const int64_t columns = std::min(RoundUp(n, kRowsAtOnce),
                                   kColumns * std::min(threads, kThreadsMax));
  return kF32Bytes * columns * std::min(k, kPackedRows);
}

int64_t PackedBytes(int64_t n, int64_t k, int threads) {
  return SharedPackedBytes(n, k, threads) +
         kF32Bytes * threads * kPackedRows * kPackedRows;
}

// The first product of a step is that of a block: the units that only look
// tables up have none.
int64_t HeapBytes(const Plan& plan, int threads) {
  constexpr int64_t kCached = 7;
  for (const Unit& unit : plan.units()) {
    if (unit.forward().matmul_flops() == 0) continue;
    const std::vector<Linear> linears = LinearsOf(plan, unit);
    if (linears.empty()) continue;
    return kCached * SharedPackedBytes(linears[0].out, linears[0].in, threads);
  }
  return 0;
}

int64_t F32ProductBytes(const Plan& plan, int threads) {
  const TrainingSpec& training = plan.job().training();
  const int64_t rows =
      int64_t{training.micro_batch_size()} * training.sequence_length();
  int64_t most = 0;
  for (const Unit& unit : plan.units()) {
    if (unit.forward().matmul_flops() == 0) continue;
    for (const Linear& linear : LinearsOf(plan, unit)) {
      const auto [in, out, in_out] = linear;
      most = std::max({most, PackedBytes(out, in, threads),
                       PackedBytes(in, out, threads),
                       PackedBytes(in_out ? out : in, rows, threads)});
    }
  }
  return most;
}

}  // namespace

ScratchBytes ScratchBytesOf(const Plan& plan, int threads) {
  constexpr int64_t kBf16ProductBytes = 3 << 19;
  const bool bf16 = ComputeType(plan.job().training()) == BF16;
  return {.attention = threads * AttentionBytes(plan.job()),
          .products = bf16 ? threads * kBf16ProductBytes
                           : F32ProductBytes(plan, threads),
          .heap = bf16 ? 0 : HeapBytes(plan, threads)};
}

}  // namespace troupe
