#include "ops/gelu.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/rows_present.h"

namespace troupe::cpu {
namespace {

// Calls `run(row, its first element, its weight)` for each row that there is.
template <typename Args, typename Run>
void ForWeightedRows(const CpuDevice& cpu, const Args& args, const Run& run) {
  const int64_t n = args.x.columns();
  const float* const weights = DataFrom<float>(args.weights, 0);
  cpu.ForRows(RowsPresent(args.offsets, args.x.rows()), n,
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin; row < end; ++row) {
                  run(row, row * n, weights != nullptr ? weights[row] : 1.0f);
                }
              });
}

template <typename Args>
bool HasRows(const Args& args) {
  return args.weights.defined() || args.offsets.defined();
}

}  // namespace

void Gelu(Device& device, const GeluArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    T* y = args.y.data<T>();
    if (HasRows(args)) {
      return ForWeightedRows(
          cpu, args, [&](int64_t, int64_t first, float weight) {
            cpu.loops<T>().gelu_of_row(x + first, y + first, args.x.columns(),
                                       weight);
          });
    }
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      const auto gelu =
          args.exact ? cpu.loops<T>().gelu_exact : cpu.loops<T>().gelu;
      gelu(x + begin, y + begin, end - begin);
    });
  });
}

void GeluBackward(Device& device, const GeluBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  float* const d_weights = DataFrom<float>(args.d_weights, 0);
  WithActivationType(args.x.dtype(), [&]<typename T>() {
    const T* x = args.x.data<T>();
    const T* dy = args.dy.data<T>();
    T* dx = args.dx.data<T>();
    if (HasRows(args)) {
      return ForWeightedRows(
          cpu, args, [&](int64_t row, int64_t first, float weight) {
            const float d_weight = cpu.loops<T>().gelu_of_row_backward(
                x + first, dy + first, dx + first, args.x.columns(), weight);
            if (d_weights != nullptr) d_weights[row] = d_weight;
          });
    }
    cpu.ForElements(args.x.elements(), [&](int64_t begin, int64_t end) {
      const auto backward = args.exact ? cpu.loops<T>().gelu_exact_backward
                                       : cpu.loops<T>().gelu_backward;
      backward(x + begin, dy + begin, dx + begin, end - begin);
    });
  });
}

}  // namespace troupe::cpu
