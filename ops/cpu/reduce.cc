#include "ops/reduce.h"

#include <algorithm>
#include <cstring>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

// One sum for each piece of fixed length, added in order.
void SumOfSquares(Device& device, const SumOfSquaresArgs& args) {
  constexpr int64_t kPiece = 65536;
  CpuDevice& cpu = CpuDevice::From(device);
  const float* x = args.x.data<float>();
  const int64_t n = args.x.elements();
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  ScratchPool::Block scratch = cpu.scratch().Take(pieces * sizeof(double));
  double* sums = scratch.as<double>();
  cpu.ForRows(pieces, kPiece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      sums[i] = cpu.simd().sum_of_squares(x + i * kPiece,
                                          std::min(kPiece, n - i * kPiece));
    }
  });
  double total = 0;
  for (int64_t i = 0; i < pieces; ++i) total += sums[i];
  *args.result.data<double>() += total;
}

void Add(Device& device, const AddArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().add(x + begin, y + begin, end - begin, args.alpha);
  });
}

void Scale(Device& device, const ScaleArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  float* x = args.x.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().scale(x + begin, end - begin, args.alpha);
  });
}

void Fill(Device& device, const FillArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  float* x = args.x.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().fill(x + begin, end - begin, args.value);
  });
}

void Copy(Device& device, const CopyArgs& args) {
  CHECK(args.x.dtype() == args.y.dtype())
      << args.x.ShapeString() << " to " << args.y.ShapeString();
  const CpuDevice& cpu = CpuDevice::From(device);
  if (args.x.dense() && args.y.dense()) {
    return device.CopyWithin(args.y.raw(), args.x.raw(), args.x.bytes());
  }
  // The leftmost dims that do not merge into rows go one by one.
  if (args.x.rank() > 2) {
    for (int64_t i = 0; i < args.x.dim(0); ++i) {
      const auto part = [i](const Tensor& t) { return t.Slice(0, i, i + 1); };
      cpu::Copy(device, {.x = part(args.x).Front(), .y = part(args.y).Front()});
    }
    return;
  }
  const size_t width = DTypeBytes(args.x.dtype());
  const int64_t columns = args.x.columns();
  cpu.ForRows(args.x.rows(), columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      std::memcpy(
          static_cast<char*>(args.y.raw()) + row * args.y.RowStride() * width,
          static_cast<char*>(args.x.raw()) + row * args.x.RowStride() * width,
          columns * width);
    }
  });
}

}  // namespace troupe::cpu
