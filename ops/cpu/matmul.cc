#include "ops/matmul.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"
#include "ops/gelu.h"

namespace troupe::cpu {
namespace {

int64_t Depth(const MatMulArgs& args) {
  return args.transpose_a ? args.a.rows() : args.a.columns();
}

// oneDNN's product, which picks its code for this machine by itself. Its matmul
// primitive is no faster for f32 on the shapes of a transformer.
void F32Product(const MatMulArgs& args) {
  const dnnl_status_t status = dnnl_sgemm(
      args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', args.c.rows(),
      args.c.columns(), Depth(args), 1.0f, args.a.data<float>(),
      args.a.RowStride(), args.b.data<float>(), args.b.RowStride(),
      args.accumulate ? 1.0f : 0.0f, args.c.data<float>(), args.c.RowStride());
  CHECK_EQ(status, dnnl_success)
      << args.a.ShapeString() << " by " << args.b.ShapeString();
}

// A part of a matrix.
struct Part {
  int64_t row, rows;
  int64_t column, columns;

  Part Transposed() const { return {column, columns, row, rows}; }
};

// to [rows, columns] = the part, in f32.
void Widen(const CpuDevice& cpu, const Tensor& from, const Part& part,
           float* to) {
  const uint16_t* first =
      from.data<uint16_t>() + part.row * from.RowStride() + part.column;
  cpu.ForRows(part.rows, part.columns, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu.loops<uint16_t>().to_f32(first + row * from.RowStride(),
                                   to + row * part.columns, part.columns);
    }
  });
}

// The part of c takes the sums [rows, columns], with what is to be added.
template <typename T>
void StoreSums(const CpuDevice& cpu, const MatMulArgs& args, const Part& part,
               float* sums) {
  T* first = args.c.data<T>() + part.row * args.c.RowStride() + part.column;
  const uint16_t* bias =
      args.bias.defined() ? args.bias.data<uint16_t>() + part.column : nullptr;
  const int64_t n = part.columns;
  cpu.ForRows(part.rows, n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = sums + row * n;
      T* c = first + row * args.c.RowStride();
      if (bias) cpu.loops<uint16_t>().add(bias, sum, n, 1.0f);
      if (args.accumulate) cpu.loops<T>().add(c, sum, n, 1.0f);
      cpu.loops<T>().from_f32(sum, c, n);
    }
  });
}

// For machines on which oneDNN has no code for bf16: blocks of a and b are
// widened to f32, in which products and sums of bf16 numbers are no less exact.
void WidenedProduct(CpuDevice& cpu, const MatMulArgs& args) {
  constexpr int64_t kRows = 512, kColumns = 512, kDepth = 1024;
  const int64_t m = args.c.rows(), n = args.c.columns(), k = Depth(args);
  ScratchPool::Block scratch =
      cpu.scratch().Take(sizeof(float) * ((kRows + kColumns) * kDepth +  //
                                          kRows * kColumns));
  float* const a = scratch.as<float>();
  float* const b = a + kRows * kDepth;
  float* const sums = b + kColumns * kDepth;
  for (int64_t row = 0; row < m; row += kRows) {
    for (int64_t column = 0; column < n; column += kColumns) {
      const int64_t rows = std::min(kRows, m - row);
      const int64_t columns = std::min(kColumns, n - column);
      std::fill_n(sums, rows * columns, 0.0f);
      for (int64_t at = 0; at < k; at += kDepth) {
        const int64_t depth = std::min(kDepth, k - at);
        const Part of_a = {row, rows, at, depth};
        const Part of_b = {at, depth, column, columns};
        Widen(cpu, args.a, args.transpose_a ? of_a.Transposed() : of_a, a);
        Widen(cpu, args.b, args.transpose_b ? of_b.Transposed() : of_b, b);
        CHECK_EQ(
            dnnl_sgemm(args.transpose_a ? 'T' : 'N',
                       args.transpose_b ? 'T' : 'N', rows, columns, depth, 1.0f,
                       a, args.transpose_a ? rows : depth, b,
                       args.transpose_b ? depth : columns, 1.0f, sums, columns),
            dnnl_success);
      }
      const Part of_c = {row, rows, column, columns};
      if (args.c.dtype() == DType::kF32) {
        StoreSums<float>(cpu, args, of_c, sums);
      } else {
        StoreSums<uint16_t>(cpu, args, of_c, sums);
      }
    }
  }
}

// c (+)= op(a) op(b) (+ bias).
void Bf16Product(CpuDevice& cpu, const MatMulArgs& args) {
  const Bf16ProductShape shape = {.m = args.c.rows(),
                                  .n = args.c.columns(),
                                  .k = Depth(args),
                                  .a_stride = args.a.RowStride(),
                                  .b_stride = args.b.RowStride(),
                                  .c_stride = args.c.RowStride(),
                                  .transpose_a = args.transpose_a,
                                  .transpose_b = args.transpose_b,
                                  .accumulate = args.accumulate,
                                  .bias = args.bias.defined(),
                                  .c_is_f32 = args.c.dtype() == DType::kF32};
  const bool done = cpu.bf16_products().Multiply(
      shape,
      {.a = args.a.data<uint16_t>(),
       .b = args.b.data<uint16_t>(),
       .bias = args.bias.defined() ? args.bias.data<uint16_t>() : nullptr,
       .c = args.c.raw()},
      cpu.scratch());
  if (!done) WidenedProduct(cpu, args);
}

// to = gelu(from), of the same shape.
template <typename T>
void GeluRows(const CpuDevice& cpu, const Tensor& from, const Tensor& to) {
  const int64_t n = to.columns();
  cpu.ForRows(to.rows(), n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu.loops<T>().gelu(from.data<T>() + row * from.RowStride(),
                          to.data<T>() + row * to.RowStride(), n);
    }
  });
}

void Bf16MatMul(CpuDevice& cpu, const MatMulArgs& args) {
  MatMulArgs linear = args;
  if (args.pre_activation.defined()) {
    linear.c = args.pre_activation.View({args.c.rows(), args.c.columns()});
  }
  {
    const OpenMpThreads threads(cpu.threads());
    Bf16Product(cpu, linear);
  }
  if (args.activation == Activation::kNone) return;
  if (args.c.dtype() == DType::kF32) {
    GeluRows<float>(cpu, linear.c, args.c);
  } else {
    GeluRows<uint16_t>(cpu, linear.c, args.c);
  }
}

void F32MatMul(CpuDevice& cpu, const MatMulArgs& args) {
  {
    const OpenMpThreads threads(cpu.threads());
    F32Product(args);
  }
  const bool gelu = args.activation == Activation::kGelu;
  if (!args.bias.defined() && !gelu) return;
  float* c = args.c.data<float>();
  float* pre = args.pre_activation.defined() ? args.pre_activation.data<float>()
                                             : nullptr;
  const float* bias = args.bias.defined() ? args.bias.data<float>() : nullptr;
  const int64_t n = args.c.columns();
  const int64_t stride = args.c.RowStride();
  cpu.ForRows(args.c.rows(), n, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      cpu.loops<float>().bias(c + row * stride, bias,
                              pre ? pre + row * n : nullptr, gelu, n);
    }
  });
}

}  // namespace

void MatMul(Device& device, const MatMulArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  if (args.a.dtype() == DType::kBF16) {
    Bf16MatMul(cpu, args);
  } else {
    F32MatMul(cpu, args);
  }
  // oneDNN fuses nothing that reads another matrix into these products.
  if (args.gelu_input.defined()) {
    cpu::GeluBackward(device,
                      {.x = args.gelu_input, .dy = args.c, .dx = args.c});
  }
}

}  // namespace troupe::cpu
