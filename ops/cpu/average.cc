#include "ops/average.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {

void Average(Device& device, const AverageArgs& args) {
  const AverageFactors factors = FactorsOf(args.decay);
  const double kept = factors.kept;
  const double taken = factors.taken;
  const float* const weights = args.weights.data<float>();
  float* const average = args.average.data<float>();
  CpuDevice::From(device).ForElements(
      args.weights.elements(), [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          average[i] =
              static_cast<float>(kept * average[i] + taken * weights[i]);
        }
      });
}

}  // namespace troupe::cpu
