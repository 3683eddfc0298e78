// Products of groups are cut into blocks of c, which threads take as they
// become free and compute alone: so experts run side by side where each is
// small, and several threads share one where it is large. Of products by our
// own code (packed_product.h) every number of threads gives the same bits.
#include "ops/grouped_matmul.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/one_thread_product.h"
#include "ops/group_rows.h"

namespace troupe::cpu {
namespace {

using Range = RowRange;  // of rows, and of columns

// A thread is worth waking for this much: 10 us of work.
constexpr int64_t kMultiplicationsMin = 1 << 19;

// Rows of a block are a multiple of this, and so few numbers that oneDNN's
// primitives for them are kept.
constexpr int64_t kRowsMultiple = 16;

// The largest block of c. Both operands are packed for each block: a group of
// some hundred rows is one, so that its matrix is packed once. By oneDNN's
// primitives fewer rows are one, since each number of them is a primitive.
constexpr int64_t kColumns = 768;
int64_t BlockRows(const CpuDevice& cpu, DType dtype) {
  return ByPrimitives(cpu, dtype) ? 256 : 512;
}

int64_t RoundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// [begin, end) in equal ranges of at most `most`, of whole multiples.
void Cut(Range all, int64_t most, int64_t multiple, std::vector<Range>& to) {
  if (all.size() == 0) return;
  const int64_t count = (all.size() + most - 1) / most;
  const int64_t size = RoundUp((all.size() + count - 1) / count, multiple);
  for (int64_t begin = all.begin; begin < all.end; begin += size) {
    to.push_back({begin, std::min(begin + size, all.end)});
  }
}

std::vector<Range> Pieces(int64_t count, int64_t most) {
  constexpr int64_t kMultiple = 48;  // whole vectors, and strips of sgemm
  std::vector<Range> pieces;
  Cut({0, count}, most, kMultiple, pieces);
  return pieces;
}

// The columns of `blocks` rows of blocks: in narrower ones where there are many
// threads, so that each has some.
std::vector<Range> Columns(const CpuDevice& cpu, int64_t count,
                           int64_t blocks) {
  constexpr int64_t kLeast = 192, kBlocksEach = 2;
  int64_t most = kColumns;
  const auto pieces = [&] { return (count + most - 1) / most; };
  while (most > kLeast && blocks * pieces() < kBlocksEach * cpu.threads()) {
    most /= 2;
  }
  return Pieces(count, most);
}

std::vector<Range> GroupsOf(const Tensor& offsets, int64_t rows) {
  return GroupRows(offsets.data<int32_t>(), offsets.elements() - 1, rows);
}

Tensor MatrixOf(const Tensor& matrices, int64_t group) {
  return matrices.Slice(0, group, group + 1).Front();
}

int ThreadsFor(const CpuDevice& cpu, int64_t multiplications) {
  return static_cast<int>(std::clamp<int64_t>(
      multiplications / kMultiplicationsMin, 1, cpu.threads()));
}

// Rows of the result that go into f32 first: sums that are not yet rounded.
void StoreRows(const CpuDevice& cpu, const float* sums, const Tensor& c,
               bool accumulate) {
  const int64_t n = c.columns();
  WithActivationType(c.dtype(), [&]<typename T>() {
    for (int64_t row = 0; row < c.rows(); ++row) {
      T* const to = c.data<T>() + row * c.RowStride();
      if (accumulate) {
        cpu.loops<T>().add_f32(sums + row * n, to, n, 1.0f);
      } else {
        cpu.loops<T>().from_f32(sums + row * n, to, n);
      }
    }
  });
}

// Rows [rows.begin, rows.end) and these columns of c.
void RowsBlock(CpuDevice& cpu, const GroupedMatMulArgs& args, int64_t group,
               Range rows, Range columns) {
  const Tensor b =
      MatrixOf(args.b, group)
          .Slice(args.transpose_b ? 0 : 1, columns.begin, columns.end);
  const Tensor c = args.c.Slice(0, rows.begin, rows.end)
                       .Slice(1, columns.begin, columns.end);
  const int64_t whole = RoundUp(rows.size(), kRowsMultiple);
  if (!ByPrimitives(cpu, args.a.dtype()) || whole == rows.size() ||
      whole > args.a.rows()) {
    return OneThreadProduct(cpu, {.a = args.a.Slice(0, rows.begin, rows.end),
                                  .b = b,
                                  .c = c,
                                  .transpose_b = args.transpose_b,
                                  .accumulate = args.accumulate});
  }
  // Some rows of other groups are multiplied too, and thrown away.
  const int64_t first = std::min(rows.begin, args.a.rows() - whole);
  ScratchPool::Block scratch =
      cpu.scratch().Take(whole * columns.size() * sizeof(float));
  OneThreadProduct(cpu, {.a = args.a.Slice(0, first, first + whole),
                         .b = b,
                         .c = Tensor(scratch.as<float>(), DType::kF32,
                                     {whole, columns.size()}),
                         .transpose_b = args.transpose_b});
  StoreRows(cpu, scratch.as<float>() + (rows.begin - first) * columns.size(), c,
            args.accumulate);
}

// A dense copy with rows of zeros behind.
Tensor Padded(const Tensor& from, int64_t rows, uint16_t* to) {
  const int64_t n = from.columns();
  for (int64_t row = 0; row < from.rows(); ++row) {
    std::copy_n(from.data<uint16_t>() + row * from.RowStride(), n,
                to + row * n);
  }
  std::fill_n(to + from.rows() * n, (rows - from.rows()) * n, uint16_t{0});
  return Tensor(to, DType::kBF16, {rows, n});
}

// sums (+)= dy^T x by oneDNN's primitives: of some rows at a time, so that few
// primitives are made, the last rows with zeros behind them.
void AddByPrimitives(CpuDevice& cpu, const Tensor& dy, const Tensor& x,
                     const Tensor& sums, bool accumulate) {
  constexpr int64_t kRows = 256;
  for (int64_t first = 0; first < x.rows(); first += kRows) {
    const int64_t end = std::min(first + kRows, x.rows());
    const int64_t whole = RoundUp(end - first, kRowsMultiple);
    MatMulArgs product = {.a = dy.Slice(0, first, end),
                          .b = x.Slice(0, first, end),
                          .c = sums,
                          .transpose_a = true,
                          .accumulate = accumulate || first > 0};
    if (whole == end - first) {
      OneThreadProduct(cpu, product);
      continue;
    }
    ScratchPool::Block scratch = cpu.scratch().Take(
        whole * (dy.columns() + x.columns()) * sizeof(uint16_t));
    uint16_t* const memory = scratch.as<uint16_t>();
    product.a = Padded(product.a, whole, memory);
    product.b = Padded(product.b, whole, memory + whole * dy.columns());
    OneThreadProduct(cpu, product);
  }
}

// Rows `out` and columns `in` of the group's dw.
void WeightBlock(CpuDevice& cpu, const GroupedWeightGradientArgs& args,
                 int64_t group, Range rows, Range out, Range in) {
  const Tensor dw = MatrixOf(args.dw, group)
                        .Slice(0, out.begin, out.end)
                        .Slice(1, in.begin, in.end);
  const Tensor dy =
      args.dy.Slice(0, rows.begin, rows.end).Slice(1, out.begin, out.end);
  const Tensor x =
      args.x.Slice(0, rows.begin, rows.end).Slice(1, in.begin, in.end);
  if (rows.size() == 0) {
    if (args.accumulate) return;
    for (int64_t row = 0; row < dw.rows(); ++row) {
      const int64_t bytes = dw.columns() * DTypeBytes(dw.dtype());
      std::fill_n(static_cast<char*>(dw.raw()) +
                      row * dw.RowStride() * DTypeBytes(dw.dtype()),
                  bytes, char{0});
    }
    return;
  }
  if (!ByPrimitives(cpu, x.dtype())) {
    return OneThreadProduct(cpu, {.a = dy,
                                  .b = x,
                                  .c = dw,
                                  .transpose_a = true,
                                  .accumulate = args.accumulate});
  }
  if (dw.dtype() == DType::kF32) {
    return AddByPrimitives(cpu, dy, x, dw, args.accumulate);
  }
  ScratchPool::Block scratch =
      cpu.scratch().Take(out.size() * in.size() * sizeof(float));
  AddByPrimitives(
      cpu, dy, x,
      Tensor(scratch.as<float>(), DType::kF32, {out.size(), in.size()}), false);
  StoreRows(cpu, scratch.as<float>(), dw, args.accumulate);
}

}  // namespace

void GroupedMatMul(Device& device, const GroupedMatMulArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows_max = BlockRows(cpu, args.a.dtype());
  const std::vector<Range> groups = GroupsOf(args.offsets, args.a.rows());
  std::vector<Range> rows;
  std::vector<int64_t> group_of;
  for (size_t group = 0; group < groups.size(); ++group) {
    Cut(groups[group], rows_max, kRowsMultiple, rows);
    group_of.resize(rows.size(), static_cast<int64_t>(group));
  }
  const auto blocks = static_cast<int64_t>(rows.size());
  const std::vector<Range> columns = Columns(cpu, args.c.columns(), blocks);
  const auto pieces = static_cast<int64_t>(columns.size());
  const int64_t multiplications = (groups.back().end - groups.front().begin) *
                                  args.a.columns() * args.c.columns();
  ParallelTasks(ThreadsFor(cpu, multiplications), blocks * pieces,
                [&](int64_t task) {
                  const int64_t block = task / pieces;
                  RowsBlock(cpu, args, group_of[block], rows[block],
                            columns[task % pieces]);
                });
}

void GroupedWeightGradient(Device& device,
                           const GroupedWeightGradientArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const std::vector<Range> groups = GroupsOf(args.offsets, args.x.rows());
  const std::vector<Range> out =
      Pieces(args.dw.dim(1), BlockRows(cpu, args.x.dtype()));
  const auto down = static_cast<int64_t>(groups.size() * out.size());
  const std::vector<Range> in = Columns(cpu, args.dw.dim(2), down);
  const auto across = static_cast<int64_t>(in.size());
  const auto blocks = static_cast<int64_t>(out.size()) * across;
  const int64_t multiplications = (groups.back().end - groups.front().begin) *
                                  args.dw.dim(1) * args.dw.dim(2);
  ParallelTasks(ThreadsFor(cpu, multiplications),
                static_cast<int64_t>(groups.size()) * blocks,
                [&](int64_t task) {
                  const int64_t group = task / blocks, block = task % blocks;
                  WeightBlock(cpu, args, group, groups[group],
                              out[block / across], in[block % across]);
                });
}

}  // namespace troupe::cpu
