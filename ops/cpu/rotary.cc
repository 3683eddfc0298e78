#include "ops/rotary.h"

#include <cmath>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// The cosines and sines of one position, [turned / 2] each.
void FillTurn(const RotaryArgs& args, int64_t position, int64_t half,
              float* cosines, float* sines) {
  const float scale = static_cast<float>(args.scale);
  const float sign = args.inverse ? -scale : scale;
  for (int64_t i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) *
                        static_cast<float>(args.inverse_frequencies[i]);
    cosines[i] = std::cos(angle) * scale;
    sines[i] = std::sin(angle) * sign;
  }
}

}  // namespace

// Each thread takes some positions, of all samples and heads.
void Rotary(Device& device, const RotaryArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  const Tensor& x = args.x;
  const int64_t width = x.columns() / args.heads;
  const int64_t half = RotaryPairs(args);
  const int64_t batch = x.dim(0);
  WithActivationType(x.dtype(), [&]<typename T>() {
    T* data = x.data<T>();
    cpu.ForRows(x.dim(1), batch * x.columns(), [&](int64_t begin, int64_t end) {
      ScratchPool::Block scratch = cpu.scratch().Take(2 * half * sizeof(float));
      float* cosines = scratch.as<float>();
      float* sines = cosines + half;
      for (int64_t t = begin; t < end; ++t) {
        FillTurn(args, args.first_position + t, half, cosines, sines);
        for (int64_t sample = 0; sample < batch; ++sample) {
          cpu.loops<T>().rotate(data + sample * x.stride(0) + t * x.stride(1),
                                cosines, sines, half, args.heads, width);
        }
      }
    });
  });
}

}  // namespace troupe::cpu
