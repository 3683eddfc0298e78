#include "ops/rotary.h"

#include <algorithm>
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

// Of all positions, [positions, 2 x half]: cosines, then sines.
void FillTurns(const CpuDevice& cpu, const RotaryArgs& args, int64_t positions,
               int64_t half, float* turns) {
  cpu.ForRows(positions, 2 * half, [&](int64_t begin, int64_t end) {
    for (int64_t position = begin; position < end; ++position) {
      float* const cosines = turns + position * 2 * half;
      FillTurn(args, position, half, cosines, cosines + half);
    }
  });
}

// Where samples have documents of their own, they turn by different angles at
// one time: all that occur are computed first.
template <typename T>
void RotateDocuments(CpuDevice& cpu, const RotaryArgs& args) {
  const Tensor& x = args.x;
  const int64_t half = RotaryPairs(args);
  const int64_t batch = x.dim(0), time = x.dim(1);
  const auto position_of = [&](int64_t sample, int64_t t) {
    const int64_t at = args.first_position + t;
    return at - args.documents
                    .data<int32_t>()[sample * args.documents.stride(0) + at];
  };
  int64_t positions = 0;
  for (int64_t row = 0; row < batch * time; ++row) {
    positions = std::max(positions, position_of(row / time, row % time) + 1);
  }
  ScratchPool::Block scratch =
      cpu.scratch().Take(positions * 2 * half * sizeof(float));
  float* const turns = scratch.as<float>();
  FillTurns(cpu, args, positions, half, turns);
  cpu.ForRows(batch * time, x.columns(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t sample = row / time, t = row % time;
      const float* const cosines = turns + position_of(sample, t) * 2 * half;
      cpu.loops<T>().rotate(
          x.data<T>() + sample * x.stride(0) + t * x.stride(1), cosines,
          cosines + half, half, args.heads, x.columns() / args.heads);
    }
  });
}

// Each thread takes some positions, of all samples and heads.
template <typename T>
void Rotate(CpuDevice& cpu, const RotaryArgs& args) {
  const Tensor& x = args.x;
  const int64_t width = x.columns() / args.heads;
  const int64_t half = RotaryPairs(args);
  const int64_t batch = x.dim(0);
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
}

}  // namespace

void Rotary(Device& device, const RotaryArgs& args) {
  CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    if (args.documents.defined()) {
      RotateDocuments<T>(cpu, args);
    } else {
      Rotate<T>(cpu, args);
    }
  });
}

}  // namespace troupe::cpu
