#include "ops/dropout.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const DropoutMask& mask = args.mask;
  const float* x = args.x.data<float>();
  const float* residual =
      args.residual.defined() ? args.residual.data<float>() : nullptr;
  float* y = args.y.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    cpu.simd().dropout(
        x + begin, residual ? residual + begin : nullptr, y + begin,
        end - begin,
        ToRaw(mask.probability, mask.stream, mask.first_element + begin));
  });
}

}  // namespace troupe::cpu
