#include "scheduler/simulate/scratch_bytes.h"

#include <algorithm>
#include <functional>

#include "proto/plan/ops/op_rules.h"
#include "proto/plan/precision.h"

namespace troupe {
namespace {

constexpr int64_t kF32Bytes = 4;

int64_t RoundUpTo(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Of one head of one sample, at the widest vectors, 16 lanes.
int64_t AttentionBytes(const AttentionShape& shape) {
  constexpr int64_t kBlock = 64;  // queries, or keys
  const int64_t head_dim = RoundUpTo(shape.head_dim, 16);
  const int64_t value_dim = RoundUpTo(shape.value_dim, 16);
  const int64_t length = RoundUpTo(shape.length, kBlock);
  const int64_t queries = length * (2 * head_dim + value_dim + 3);
  const int64_t sums = length * (head_dim + value_dim);
  const int64_t blocks =
      kBlock * (3 * head_dim + 2 * value_dim) + 4 * kBlock * kBlock;
  return kF32Bytes * (queries + sums + blocks);
}

int64_t MostOfAttention(const Plan& plan) {
  int64_t most = 0;
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      const auto shape = AttentionShapeOf({table, op});
      if (shape.has_value()) most = std::max(most, AttentionBytes(*shape));
    }
  }
  return most;
}

// Rows of what is packed at once, and columns of what is not shared.
constexpr int64_t kPackedRows = 384;

// Of the product [m, k] x [k, n], for any m: what the threads share.
int64_t SharedPackedBytes(int64_t n, int64_t k, int threads) {
  constexpr int64_t kColumns = 9984, kRowsAtOnce = 48;
  constexpr int kThreadsMax = 10;
  const int64_t columns = std::min(RoundUpTo(n, kRowsAtOnce),
                                   kColumns * std::min(threads, kThreadsMax));
  return kF32Bytes * columns * std::min(k, kPackedRows);
}

int64_t PackedBytes(int64_t n, int64_t k, int threads) {
  return SharedPackedBytes(n, k, threads) +
         kF32Bytes * threads * kPackedRows * kPackedRows;
}

// By the first product of a step.
int64_t HeapBytes(const Plan& plan, int threads) {
  constexpr int64_t kCached = 7;
  for (const Unit& unit : plan.units()) {
    if (!unit.has_table()) continue;
    const UnitTable& table = plan.tables(unit.table());
    for (const Op& op : table.ops()) {
      const PassProducts products = RulesOf({table, op}).products;
      if (products.forward.empty()) continue;
      const MatrixProduct& first = products.forward.front();
      return kCached * SharedPackedBytes(first.n, first.k, threads);
    }
  }
  return 0;
}

// The most that any product of a step takes.
int64_t MostOfProducts(
    const Plan& plan,
    const std::function<int64_t(const MatrixProduct&)>& bytes) {
  int64_t most = 0;
  for (const UnitTable& table : plan.tables()) {
    for (const Op& op : table.ops()) {
      const PassProducts products = RulesOf({table, op}).products;
      for (const auto* const pass :
           {&products.forward, &products.backward_input,
            &products.backward_weight}) {
        for (const MatrixProduct& product : *pass) {
          most = std::max(most, bytes(product));
        }
      }
    }
  }
  return most;
}

// The size of equal pieces of at most `most`, at the widest strips.
int64_t PieceOf(int64_t n, int64_t most, int64_t strip) {
  const int64_t pieces = (n + most - 1) / most;
  return RoundUpTo((n + pieces - 1) / pieces, strip);
}

int64_t NarrowPackedBytes(const MatrixProduct& product) {
  constexpr int64_t kSide = 1024, kDepth = 256;
  constexpr int64_t kStripRows = 6, kStripColumns = 64;
  const int64_t rows = PieceOf(product.m, kSide, kStripRows);
  const int64_t columns = PieceOf(product.n, kSide, kStripColumns);
  const int64_t depth = PieceOf(product.k, kDepth, 1);
  return kF32Bytes * ((rows + columns) * depth + rows * columns);
}

int64_t NarrowProductBytes(const Plan& plan, const ScratchOptions& options) {
  constexpr int64_t kOneDnnBytes = 3 << 19;  // for each thread
  const bool bf16 = ComputeType(plan.job().training()) == BF16;
  return bf16 && options.bf16_instructions
             ? options.threads * kOneDnnBytes
             : MostOfProducts(plan, NarrowPackedBytes);
}

// Products of experts: each block is one thread's, which packs both operands of
// it (ops/cpu/grouped_matmul.cc).
int64_t GroupedBytes(const Plan& plan, const ScratchOptions& options) {
  constexpr int64_t kPackedBySgemm = 1800 << 10;
  constexpr int64_t kPackedByOurs = 2900 << 10;
  constexpr int64_t kOfPrimitives = 800 << 10;
  bool grouped = false;
  for (const UnitTable& table : plan.tables()) {
    grouped |= std::any_of(table.ops().begin(), table.ops().end(),
                           [&table](const Op& op) {
                             return RulesOf({table, op}).products.grouped;
                           });
  }
  if (!grouped) return 0;
  const ElementType type = ComputeType(plan.job().training());
  const int64_t of_thread = type == F32 ? kPackedBySgemm
                            : type == BF16 && options.bf16_instructions
                                ? kOfPrimitives
                                : kPackedByOurs;
  return options.threads * of_thread;
}

}  // namespace

ScratchBytes ScratchBytesOf(const Plan& plan, const ScratchOptions& options) {
  const int threads = options.threads;
  const int64_t attention = threads * MostOfAttention(plan);
  if (ComputeType(plan.job().training()) != F32) {
    return {.attention = attention,
            .products = std::max(NarrowProductBytes(plan, options),
                                 GroupedBytes(plan, options))};
  }
  return {
      .attention = attention,
      .products = std::max(MostOfProducts(plan,
                                          [&](const MatrixProduct& product) {
                                            return PackedBytes(
                                                product.n, product.k, threads);
                                          }),
                           GroupedBytes(plan, options)),
      .heap = HeapBytes(plan, threads)};
}

}  // namespace troupe
