#include "ops/dropout.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void ApplyDropout(Device& device, const ApplyDropoutArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const DropoutMask& mask = args.mask;
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    // Elements [begin, end), whose global indices start at `index`.
    const auto run = [&](int64_t begin, int64_t end, uint64_t index) {
      cpu.loops<T>().dropout(DataFrom<T>(args.x, begin),
                             DataFrom<T>(args.residual, begin),
                             DataFrom<T>(args.y, begin), end - begin,
                             ToRaw(mask.probability, mask.stream, index));
    };
    if (mask.columns == 0 || mask.columns == mask.row_stride) {
      cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
        run(begin, end, mask.first_element + begin);
      });
      return;
    }
    const int64_t n = mask.columns;
    cpu.ForRows(args.x.rows(), n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        run(row * n, (row + 1) * n, mask.first_element + row * mask.row_stride);
      }
    });
  });
}

}  // namespace troupe::cpu
