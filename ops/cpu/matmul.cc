#include "ops/matmul.h"

#include <oneapi/dnnl/dnnl.h>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// oneDNN's product, which picks its code for this machine by itself. Its matmul
// primitive is no faster for f32 on the shapes of a transformer (tests/bench)
// and costs a cache of primitives; bf16 will want it.
void Product(const MatMulArgs& args) {
  const int64_t m = args.c.rows();
  const int64_t n = args.c.columns();
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.columns();
  const dnnl_status_t status = dnnl_sgemm(
      args.transpose_a ? 'T' : 'N', args.transpose_b ? 'T' : 'N', m, n, k, 1.0f,
      args.a.data<float>(), args.a.RowStride(), args.b.data<float>(),
      args.b.RowStride(), args.accumulate ? 1.0f : 0.0f, args.c.data<float>(),
      args.c.RowStride());
  CHECK_EQ(status, dnnl_success)
      << args.a.ShapeString() << " by " << args.b.ShapeString();
}

}  // namespace

void MatMul(Device& device, const MatMulArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  {
    const OpenMpThreads threads(cpu.threads());
    Product(args);
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

}  // namespace troupe::cpu
