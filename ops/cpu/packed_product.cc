#include "ops/cpu/packed_product.h"

#include <algorithm>

namespace troupe::cpu {
namespace {

// Of a block of c, and how much of the contracted dimension is packed at once:
// so that a thread's part of what is packed stays in its caches
// (scheduler/simulate/scratch_bytes.cc knows them too).
constexpr int64_t kSide = 1024;
constexpr int64_t kDepth = 256;

// Products are cut for more threads while each has this much: 10 us of work.
constexpr int64_t kMultiplicationsMin = 1 << 19;

int64_t DivideUp(int64_t n, int64_t by) { return (n + by - 1) / by; }

// The size of equal pieces of at most `most`, a multiple of `multiple`.
int64_t PieceOf(int64_t n, int64_t most, int64_t multiple) {
  return DivideUp(DivideUp(n, DivideUp(n, most)), multiple) * multiple;
}

struct Range {
  int64_t begin, end;
};
Range Share(int64_t count, int64_t part, int64_t parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

// An operand: element (i, p), i along the result.
struct Operand {
  const uint16_t* first;
  int64_t stride, step;
};
Operand RowsOf(const MatMulArgs& args) {
  const int64_t stride = args.a.RowStride();
  return {args.a.data<uint16_t>(), args.transpose_a ? 1 : stride,
          args.transpose_a ? stride : 1};
}
Operand ColumnsOf(const MatMulArgs& args) {
  const int64_t stride = args.b.RowStride();
  return {args.b.data<uint16_t>(), args.transpose_b ? stride : 1,
          args.transpose_b ? 1 : stride};
}

// The product of one block of c, over all that is contracted.
class BlockOfC {
 public:
  struct Place {
    int64_t row, rows;
    int64_t column, columns;
  };
  struct Scratch {
    float *a, *b, *sums;
  };

  BlockOfC(CpuDevice& cpu, const MatMulArgs& args, const Place& place,
           const Scratch& scratch)
      : cpu_(cpu),
        args_(args),
        at_(place),
        scratch_(scratch),
        a_strips_(DivideUp(place.rows, cpu.simd().product_rows)),
        b_strips_(DivideUp(place.columns, cpu.simd().product_columns)) {}

  void Compute(int64_t k) {
    const int64_t depth = PieceOf(k, kDepth, 1);
    const int parts = static_cast<int>(std::clamp<int64_t>(
        at_.rows * at_.columns * depth / kMultiplicationsMin, 1,
        cpu_.threads()));
    const auto on_threads = [&](absl::FunctionRef<void(int64_t)> part) {
      ParallelRanges({.threads = parts, .count = parts},
                     [&](int64_t begin, int64_t end) {
                       for (; begin < end; ++begin) part(begin);
                     });
    };
    for (int64_t first = 0; first < k; first += depth) {
      const int64_t here = std::min(depth, k - first);
      on_threads([&](int64_t part) { Pack(first, here, part, parts); });
      on_threads([&](int64_t part) {
        Multiply(first, here, part, parts);
        if (first + here == k) Store(part, parts);
      });
    }
  }

 private:
  // Strips [begin, end) of an operand whose numbers there are [place, place +
  // count).
  void PackStrips(void (*pack)(const RawPack&), const Operand& operand,
                  int64_t place, int64_t count, int width, const Range& strips,
                  int64_t first, int64_t depth, float* to) const {
    const int64_t skipped = strips.begin * width;
    pack({.from = operand.first + (place + skipped) * operand.stride +
                  first * operand.step,
          .stride = operand.stride,
          .step = operand.step,
          .count = std::min(strips.end * width, count) - skipped,
          .depth = depth,
          .to = to + skipped * depth});
  }

  void Pack(int64_t first, int64_t depth, int64_t part, int64_t parts) const {
    const SimdTable& simd = cpu_.simd();
    PackStrips(simd.pack_rows, RowsOf(args_), at_.row, at_.rows,
               simd.product_rows, Share(a_strips_, part, parts), first, depth,
               scratch_.a);
    PackStrips(simd.pack_columns, ColumnsOf(args_), at_.column, at_.columns,
               simd.product_columns, Share(b_strips_, part, parts), first,
               depth, scratch_.b);
  }

  // A part has all strips of the operand that has fewer.
  bool cut_rows() const { return a_strips_ >= b_strips_; }
  Range RowStrips(int64_t part, int64_t parts) const {
    return cut_rows() ? Share(a_strips_, part, parts) : Range{0, a_strips_};
  }
  Range ColumnStrips(int64_t part, int64_t parts) const {
    return cut_rows() ? Range{0, b_strips_} : Share(b_strips_, part, parts);
  }

  void Multiply(int64_t first, int64_t depth, int64_t part,
                int64_t parts) const {
    const Range rows = RowStrips(part, parts);
    const Range columns = ColumnStrips(part, parts);
    cpu_.simd().multiply_packed({.a = scratch_.a,
                                 .b = scratch_.b,
                                 .depth = depth,
                                 .rows = at_.rows,
                                 .a_begin = rows.begin,
                                 .a_end = rows.end,
                                 .b_begin = columns.begin,
                                 .b_end = columns.end,
                                 .b_strips = b_strips_,
                                 .sums = scratch_.sums,
                                 .accumulate = first > 0});
  }

  void Store(int64_t part, int64_t parts) const {
    if (args_.c.dtype() == DType::kF32) {
      StoreAs<float>(RowStrips(part, parts), ColumnStrips(part, parts));
    } else {
      StoreAs<uint16_t>(RowStrips(part, parts), ColumnStrips(part, parts));
    }
  }

  template <typename T>
  void StoreAs(const Range& row_strips, const Range& column_strips) const {
    const int rows = cpu_.simd().product_rows;
    const int columns = cpu_.simd().product_columns;
    const int64_t first = column_strips.begin * columns;
    const int64_t column = at_.column + first;
    cpu_.loops<T>().store_sums(
        {.sums = scratch_.sums + first * rows,
         .b_strips = b_strips_,
         .begin = row_strips.begin * rows,
         .end = std::min(row_strips.end * rows, at_.rows),
         .columns = std::min(column_strips.end * columns, at_.columns) - first,
         .bias = args_.bias.defined() ? args_.bias.data<uint16_t>() + column
                                      : nullptr,
         .c = args_.c.data<T>() + at_.row * args_.c.RowStride() + column,
         .c_stride = args_.c.RowStride(),
         .accumulate = args_.accumulate});
  }

  CpuDevice& cpu_;
  const MatMulArgs& args_;
  const Place at_;
  const Scratch scratch_;
  const int64_t a_strips_, b_strips_;
};

}  // namespace

void PackedProduct(CpuDevice& cpu, const MatMulArgs& args) {
  const int64_t m = args.c.rows(), n = args.c.columns();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.columns();
  const int64_t rows = PieceOf(m, kSide, cpu.simd().product_rows);
  const int64_t columns = PieceOf(n, kSide, cpu.simd().product_columns);
  const int64_t depth = PieceOf(k, kDepth, 1);
  // Always as much, of which it touches what it needs: a block that is replaced
  // by a larger one leaves a hole in the heap.
  const int64_t rows_max = PieceOf(kSide, kSide, cpu.simd().product_rows);
  ScratchPool::Block block = cpu.scratch().Take(
      sizeof(float) * ((rows_max + kSide) * kDepth + rows_max * kSide));
  float* const a = block.as<float>();
  float* const b = a + rows * depth;
  float* const sums = b + columns * depth;
  for (int64_t row = 0; row < m; row += rows) {
    for (int64_t column = 0; column < n; column += columns) {
      BlockOfC(cpu, args,
               {.row = row,
                .rows = std::min(rows, m - row),
                .column = column,
                .columns = std::min(columns, n - column)},
               {.a = a, .b = b, .sums = sums})
          .Compute(k);
    }
  }
}

}  // namespace troupe::cpu
