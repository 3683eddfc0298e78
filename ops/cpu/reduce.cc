#include "ops/reduce.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// Copies `count` elements from element `from` of x on to element `to` of y.
struct Run {
  const Tensor& x;
  int64_t from;
  const Tensor& y;
  int64_t to;
  int64_t count;
};

void CopyRun(const CpuDevice& cpu, const Run& run) {
  if (run.x.dtype() == run.y.dtype()) {
    const size_t width = DTypeBytes(run.x.dtype());
    std::memcpy(static_cast<char*>(run.y.raw()) + run.to * width,
                static_cast<char*>(run.x.raw()) + run.from * width,
                run.count * width);
  } else if (run.x.dtype() == DType::kF32) {
    WithActivationType(run.y.dtype(), [&]<typename T>() {
      cpu.loops<T>().from_f32(run.x.data<float>() + run.from,
                              run.y.data<T>() + run.to, run.count);
    });
  } else {
    WithActivationType(run.x.dtype(), [&]<typename T>() {
      cpu.loops<T>().to_f32(run.x.data<T>() + run.from,
                            run.y.data<float>() + run.to, run.count);
    });
  }
}

// Of two tensors of one shape, the parts whose dims merge into rows: leftmost
// dims go one by one.
void ForPartsOfRows(
    const Tensor& x, const Tensor& y,
    const std::function<void(const Tensor& x, const Tensor& y)>& run) {
  if (x.rank() <= 2) return run(x, y);
  for (int64_t i = 0; i < x.dim(0); ++i) {
    const auto part = [i](const Tensor& t) {
      return t.Slice(0, i, i + 1).Front();
    };
    ForPartsOfRows(part(x), part(y), run);
  }
}

}  // namespace

// One sum for each piece of fixed length, added in order.
void SumOfSquares(Device& device, const SumOfSquaresArgs& args) {
  constexpr int64_t kPiece = 65536;
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.x.elements();
  const int64_t pieces = (n + kPiece - 1) / kPiece;
  ScratchPool::Block scratch = cpu.scratch().Take(pieces * sizeof(double));
  double* sums = scratch.as<double>();
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    cpu.ForRows(pieces, kPiece, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sums[i] = cpu.loops<T>().sum_of_squares(
            x + i * kPiece, std::min(kPiece, n - i * kPiece));
      }
    });
  });
  double total = 0;
  for (int64_t i = 0; i < pieces; ++i) total += sums[i];
  *args.result.data<double>() += total;
}

void Add(Device& device, const AddArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    if (args.x.dense() && args.y.dense()) {
      const T* x = args.x.data<T>();
      T* y = args.y.data<T>();
      return cpu.ForElements(
          args.x.elements(), [&](int64_t begin, int64_t end) {
            cpu.loops<T>().add_to_own(x + begin, y + begin, end - begin,
                                      args.alpha);
          });
    }
    ForPartsOfRows(args.x, args.y, [&](const Tensor& x, const Tensor& y) {
      cpu.ForRows(x.rows(), x.columns(), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          cpu.loops<T>().add_to_own(x.data<T>() + row * x.RowStride(),
                                    y.data<T>() + row * y.RowStride(),
                                    x.columns(), args.alpha);
        }
      });
    });
  });
}

void Scale(Device& device, const ScaleArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    T* x = args.x.data<T>();
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      cpu.loops<T>().scale(x + begin, end - begin, args.alpha);
    });
  });
}

void Fill(Device& device, const FillArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    T* x = args.x.data<T>();
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      cpu.loops<T>().fill(x + begin, end - begin, args.value);
    });
  });
}

void Copy(Device& device, const CopyArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const Tensor& x = args.x;
  const Tensor& y = args.y;
  if (x.dense() && y.dense()) {
    if (x.dtype() == y.dtype()) {
      return device.CopyWithin(y.raw(), x.raw(), x.bytes());
    }
    return cpu.ForElements(x.elements(), [&](int64_t begin, int64_t end) {
      CopyRun(cpu, {x, begin, y, begin, end - begin});
    });
  }
  ForPartsOfRows(x, y, [&](const Tensor& x, const Tensor& y) {
    const int64_t columns = x.columns();
    cpu.ForRows(x.rows(), columns, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        CopyRun(cpu, {x, row * x.RowStride(), y, row * y.RowStride(), columns});
      }
    });
  });
}

}  // namespace troupe::cpu
