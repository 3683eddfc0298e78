#include "ops/cpu/packed_product.h"

#include <algorithm>
#include <atomic>
#include <limits>

namespace troupe::cpu {
namespace {

// Of the largest block of c, and how much of the contracted dimension is packed
// at once: so that what a thread packs stays in its caches. The threads share
// the memory of one such block (scheduler/simulate/scratch_bytes.cc knows it
// too).
constexpr int64_t kSide = 1024;
constexpr int64_t kDepth = 256;

// A thread is worth waking for this much: 10 us of work.
constexpr int64_t kPackedMultiplicationsMin = 1 << 19;

int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

// The size of equal pieces of at most `most`, a multiple of `multiple`.
int64_t PieceOf(int64_t n, int64_t most, int64_t multiple) {
  return DivideUp(DivideUp(n, DivideUp(n, most)), multiple) * multiple;
}

int64_t FloatsOf(int64_t rows, int64_t columns, int64_t depth) {
  return (rows + columns) * depth + rows * columns;
}

// How c is cut into blocks that a thread computes alone.
struct PanelCut {
  int threads = 1;
  int64_t rows = 0, columns = 0;  // of a block of c
  int64_t depth = 0;              // packed at once
  int64_t floats() const { return FloatsOf(rows, columns, depth); }
};

struct Sizes {
  int64_t m, n, k;
};

int64_t BlocksOf(const Sizes& s, const PanelCut& cut) {
  return DivideUp(s.m, cut.rows) * DivideUp(s.n, cut.columns);
}

// What a multiplication costs in such blocks, 1 being itself: small blocks are
// packed more often, of little depth the sums pass by more often, and of few
// blocks some threads wait at the end. A number of a, whose strips are narrower
// than a vector may be, costs more to pack than one of b.
double CostOf(const Sizes& s, const PanelCut& cut) {
  constexpr double kPackedOfA = 24, kPackedOfB = 12, kSum = 8;
  const int64_t blocks = BlocksOf(s, cut);
  const int64_t turns = DivideUp(blocks, cut.threads);
  return (1 + kPackedOfB / static_cast<double>(cut.rows) +
          kPackedOfA / static_cast<double>(cut.columns) +
          kSum / static_cast<double>(cut.depth)) *
         static_cast<double>(turns * cut.threads) / static_cast<double>(blocks);
}

// The cheapest of those whose blocks share the memory of the largest.
PanelCut CutFor(const SimdTable& simd, const Sizes& s, int threads_max) {
  constexpr int64_t kPiecesMax = 16;  // that the largest side is tried in
  constexpr int64_t kTurnsEnough = 4;
  const PanelCut largest = {
      .threads = 1,
      .rows = PieceOf(s.m, kSide, simd.product_rows),
      .columns = PieceOf(s.n, kSide, simd.product_columns),
      .depth = PieceOf(s.k, kDepth, 1)};
  const int64_t strips =
      DivideUp(s.m, simd.product_rows) * DivideUp(s.n, simd.product_columns);
  const auto threads = static_cast<int>(
      std::clamp<int64_t>(s.m * s.n * s.k / kPackedMultiplicationsMin, 1,
                          std::min<int64_t>(threads_max, strips)));
  if (threads == 1) return largest;
  const int64_t floats = largest.floats() / threads;
  PanelCut best = largest;  // where there is no room for a block for each
  double least = std::numeric_limits<double>::infinity();
  for (int64_t down = 1; down <= kPiecesMax; ++down) {
    for (int64_t across = 1; across <= kPiecesMax; ++across) {
      PanelCut cut = {
          .threads = threads,
          .rows = PieceOf(s.m, kSide / down, simd.product_rows),
          .columns = PieceOf(s.n, kSide / across, simd.product_columns)};
      const int64_t depth_max =
          (floats - cut.rows * cut.columns) / (cut.rows + cut.columns);
      if (depth_max > 0) {
        cut.depth = PieceOf(s.k, std::min(depth_max, kDepth), 1);
        const double cost = CostOf(s, cut);
        if (cost < least) {
          least = cost;
          best = cut;
        }
        if (BlocksOf(s, cut) >= kTurnsEnough * threads) break;
      }
      if (cut.columns == simd.product_columns) break;
    }
  }
  return best;
}

// An operand: element (i, p), i along the result.
template <typename T>
struct Operand {
  const T* first;
  int64_t stride, step;
};
template <typename T>
Operand<T> RowsOf(const MatMulArgs& args) {
  const int64_t stride = args.a.RowStride();
  return {args.a.data<T>(), args.transpose_a ? 1 : stride,
          args.transpose_a ? stride : 1};
}
template <typename T>
Operand<T> ColumnsOf(const MatMulArgs& args) {
  const int64_t stride = args.b.RowStride();
  return {args.b.data<T>(), args.transpose_b ? stride : 1,
          args.transpose_b ? 1 : stride};
}

// The product of one block of c, over all that is contracted, of operands of T.
template <typename T>
class BlockOfC {
 public:
  struct Place {
    int64_t row, rows;
    int64_t column, columns;
  };

  BlockOfC(const CpuDevice& cpu, const MatMulArgs& args, const Place& place)
      : cpu_(cpu),
        args_(args),
        at_(place),
        a_strips_(DivideUp(place.rows, cpu.simd().product_rows)),
        b_strips_(DivideUp(place.columns, cpu.simd().product_columns)) {}

  // With the floats of a cut whose block this is, or the rest of one.
  void Compute(int64_t k, const PanelCut& cut, float* scratch) const {
    const SimdTable& simd = cpu_.simd();
    const ActivationLoops<T>& loops = cpu_.loops<T>();
    float* const a = scratch;
    float* const b = a + cut.rows * cut.depth;
    float* const sums = b + cut.columns * cut.depth;
    for (int64_t first = 0; first < k; first += cut.depth) {
      const int64_t depth = std::min(cut.depth, k - first);
      loops.pack_rows(
          Pack(RowsOf<T>(args_), at_.row, at_.rows, first, depth, a));
      loops.pack_columns(
          Pack(ColumnsOf<T>(args_), at_.column, at_.columns, first, depth, b));
      simd.multiply_packed({.a = a,
                            .b = b,
                            .depth = depth,
                            .rows = at_.rows,
                            .a_strips = a_strips_,
                            .b_strips = b_strips_,
                            .sums = sums,
                            .accumulate = first > 0});
    }
    if (args_.c.dtype() == DType::kF32) {
      loops.store_sums_f32(Sums<float>(sums));
    } else {
      loops.store_sums(Sums<T>(sums));
    }
  }

 private:
  // Numbers [place, place + count) of an operand.
  static RawPack<T> Pack(const Operand<T>& operand, int64_t place,
                         int64_t count, int64_t first, int64_t depth,
                         float* to) {
    return {
        .from = operand.first + place * operand.stride + first * operand.step,
        .stride = operand.stride,
        .step = operand.step,
        .count = count,
        .depth = depth,
        .to = to};
  }

  template <typename C>
  RawStoreSums<T, C> Sums(const float* sums) const {
    const int64_t stride = args_.c.RowStride();
    return {.sums = sums,
            .b_strips = b_strips_,
            .rows = at_.rows,
            .columns = at_.columns,
            .bias = DataFrom<T>(args_.bias, at_.column),
            .c = args_.c.data<C>() + at_.row * stride + at_.column,
            .c_stride = stride,
            .accumulate = args_.accumulate};
  }

  const CpuDevice& cpu_;
  const MatMulArgs& args_;
  const Place at_;
  const int64_t a_strips_, b_strips_;
};

template <typename T>
void Product(CpuDevice& cpu, const MatMulArgs& args, int threads) {
  const int64_t m = args.c.rows(), n = args.c.columns();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.columns();
  const PanelCut cut = CutFor(cpu.simd(), {m, n, k}, threads);
  // Always as much, of which it touches what it needs: a block that is replaced
  // by a larger one leaves a hole in the heap.
  const int64_t rows_max = PieceOf(kSide, kSide, cpu.simd().product_rows);
  const int64_t floats = FloatsOf(rows_max, kSide, kDepth);
  CHECK_LE(cut.threads * cut.floats(), floats)
      << args.a.ShapeString() << " by " << args.b.ShapeString();
  ScratchPool::Block scratch = cpu.scratch().Take(sizeof(float) * floats);
  const int64_t across = DivideUp(n, cut.columns);
  const int64_t blocks = DivideUp(m, cut.rows) * across;
  // Threads meet at the end only, and take blocks as they become free: where
  // they met after each depth, each waited for a thread that was held up.
  std::atomic<int64_t> next{0};
  const auto compute = [&](float* memory) {
    for (int64_t block; (block = next.fetch_add(1)) < blocks;) {
      const int64_t row = block / across * cut.rows;
      const int64_t column = block % across * cut.columns;
      BlockOfC<T>(cpu, args,
                  {.row = row,
                   .rows = std::min(cut.rows, m - row),
                   .column = column,
                   .columns = std::min(cut.columns, n - column)})
          .Compute(k, cut, memory);
    }
  };
  ParallelRanges({.threads = cut.threads, .count = cut.threads},
                 [&](int64_t thread, int64_t) {
                   compute(scratch.as<float>() + thread * cut.floats());
                 });
}

}  // namespace

void PackedProduct(CpuDevice& cpu, const MatMulArgs& args, int threads) {
  WithActivationType(args.a.dtype(),
                     [&]<typename T>() { Product<T>(cpu, args, threads); });
}

}  // namespace troupe::cpu
