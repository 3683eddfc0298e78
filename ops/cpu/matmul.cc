#include "ops/matmul.h"

#include <algorithm>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/f32_product.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/one_thread_product.h"
#include "ops/cpu/packed_product.h"
#include "ops/gelu.h"

namespace troupe::cpu {
namespace {

// Where oneDNN's threads do not share what they pack, each packs its part of
// the columns by itself, and the heap of each thread keeps it several times
// over (scheduler/simulate/scratch_bytes.h): a vocabulary at once would be some
// 100 MB.
void F32Product(const CpuDevice& cpu, const MatMulArgs& args) {
  constexpr int64_t kColumns = 2048, kMultiple = 48;
  const int64_t n = args.c.columns();
  const int64_t pieces =
      cpu.shares_packed() ? 1 : (n + kColumns - 1) / kColumns;
  const int64_t columns =
      (n + pieces * kMultiple - 1) / (pieces * kMultiple) * kMultiple;
  for (int64_t first = 0; first < n; first += columns) {
    SgemmColumns(args, first, std::min(columns, n - first));
  }
}

// c (+)= op(a) op(b) (+ bias), of bf16 or fp16.
void NarrowProduct(CpuDevice& cpu, const MatMulArgs& args) {
  if (!ByPrimitives(cpu, args.a.dtype())) {
    return PackedProduct(cpu, args, cpu.threads());
  }
  const OpenMpThreads threads(cpu.threads());
  cpu.bf16_products().Multiply(
      Bf16ProductShapeOf(args),
      {.a = args.a.data<uint16_t>(),
       .b = args.b.data<uint16_t>(),
       .bias = args.bias.defined() ? args.bias.data<uint16_t>() : nullptr,
       .c = args.c.raw()},
      cpu.scratch());
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

void NarrowMatMul(CpuDevice& cpu, const MatMulArgs& args) {
  MatMulArgs linear = args;
  if (args.pre_activation.defined()) {
    linear.c = args.pre_activation.View({args.c.rows(), args.c.columns()});
  }
  NarrowProduct(cpu, linear);
  if (args.activation == Activation::kNone) return;
  WithActivationType(args.c.dtype(),
                     [&]<typename T>() { GeluRows<T>(cpu, linear.c, args.c); });
}

void F32MatMul(CpuDevice& cpu, const MatMulArgs& args) {
  {
    const OpenMpThreads threads(cpu.threads());
    F32Product(cpu, args);
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

// c += residual.
void AddResidual(const CpuDevice& cpu, const MatMulArgs& args) {
  const int64_t n = args.c.columns();
  WithActivationType(args.c.dtype(), [&]<typename T>() {
    cpu.ForRows(args.c.rows(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        cpu.loops<T>().add_to_own(
            args.residual.data<T>() + row * args.residual.RowStride(),
            args.c.data<T>() + row * args.c.RowStride(), n, 1.0f);
      }
    });
  });
}

}  // namespace

void MatMul(Device& device, const MatMulArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  if (args.a.dtype() == DType::kF32) {
    F32MatMul(cpu, args);
  } else {
    NarrowMatMul(cpu, args);
  }
  // oneDNN fuses nothing that reads another matrix into these products.
  if (args.residual.defined()) AddResidual(cpu, args);
  if (args.gelu_input.defined()) {
    cpu::GeluBackward(device,
                      {.x = args.gelu_input, .dy = args.c, .dx = args.c});
  }
}

}  // namespace troupe::cpu
