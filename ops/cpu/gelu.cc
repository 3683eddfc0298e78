#include "ops/gelu.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void Gelu(Device& device, const GeluArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const float* x = args.x.data<float>();
  float* y = args.y.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().gelu(x + begin, y + begin, end - begin);
  });
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const float* x = args.x.data<float>();
  const float* dy = args.dy.data<float>();
  float* dx = args.dx.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().gelu_backward(x + begin, dy + begin, dx + begin, end - begin);
  });
}

}  // namespace troupe::cpu
