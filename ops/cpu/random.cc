#include "ops/random.h"

#include <cmath>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// The standard normals of one block, as random.h lays them out.
void NormalBlock(const PhiloxStream& stream, uint64_t block, double* normals) {
  constexpr double kUnit = 1.0 / 16777216.0;
  constexpr double kTwoPi = 6.283185307179586;
  const std::array<uint32_t, 4> bits = PhiloxBlock(stream, block);
  for (int pair = 0; pair < 4; pair += 2) {
    const double u = ((bits[pair] >> 8) + 1) * kUnit;
    const double angle = kTwoPi * ((bits[pair + 1] >> 8) * kUnit);
    const double radius = std::sqrt(-2.0 * std::log(u));
    normals[pair] = radius * std::cos(angle);
    normals[pair + 1] = radius * std::sin(angle);
  }
}

}  // namespace

void FillNormal(Device& device, const FillNormalArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  float* x = args.x.data<float>();
  cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
    double normals[4];
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t element = args.first_index + i;
      if (i == begin || element % 4 == 0) {
        NormalBlock(args.stream, element / 4, normals);
      }
      x[i] = static_cast<float>(args.mean +
                                args.standard_deviation * normals[element % 4]);
    }
  });
}

}  // namespace troupe::cpu
