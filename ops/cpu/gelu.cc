#include "ops/gelu.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void Gelu(Device& device, const GeluArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      const auto gelu =
          args.exact ? cpu.loops<T>().gelu_exact : cpu.loops<T>().gelu;
      gelu(x + begin, y + begin, end - begin);
    });
  });
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    const T* dy = args.dy.data<T>();
    T* dx = args.dx.data<T>();
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      const auto backward = args.exact ? cpu.loops<T>().gelu_exact_backward
                                       : cpu.loops<T>().gelu_backward;
      backward(x + begin, dy + begin, dx + begin, end - begin);
    });
  });
}

}  // namespace troupe::cpu
