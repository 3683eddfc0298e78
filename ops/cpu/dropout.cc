#include "ops/dropout.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const DropoutMask& mask = args.mask;
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      cpu.loops<T>().dropout(
          DataFrom<T>(args.x, begin), DataFrom<T>(args.residual, begin),
          DataFrom<T>(args.y, begin), end - begin,
          ToRaw(mask.probability, mask.stream, mask.first_element + begin));
    });
  });
}

}  // namespace troupe::cpu
