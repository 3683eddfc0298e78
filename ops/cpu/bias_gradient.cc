#include "ops/bias_gradient.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/gradient_sum.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void BiasGradient(Device& device, const BiasGradientArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const int64_t rows = args.dy.rows();
  const int64_t stride = args.dy.RowStride();
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    const T* dy = args.dy.data<T>();
    cpu.ForColumns(rows, args.dy.columns(), [&](int64_t begin, int64_t end) {
      const GradientSum db(cpu, args.db, begin, end - begin);
      cpu.loops<T>().column_sum(dy + begin, rows, stride, db.data(),
                                end - begin);
      db.Add();
    });
  });
}

}  // namespace troupe::cpu
