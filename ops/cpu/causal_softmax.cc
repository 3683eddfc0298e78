#include "ops/causal_softmax.h"

#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// How many keys a row of a matrix of `queries` rows sees.
int64_t KeysSeen(int64_t row, int64_t queries, int64_t first_position) {
  return first_position + row % queries + 1;
}

}  // namespace

void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t keys = args.y.columns();
  const int64_t queries = args.y.dim(args.y.rank() - 2);
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), keys, [&](int64_t begin, int64_t end) {
      std::vector<float> scores(keys);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t seen = KeysSeen(row, queries, args.first_position);
        const T* const x = args.x.data<T>() + row * keys;
        T* const y = args.y.data<T>() + row * keys;
        for (int64_t j = 0; j < seen; ++j) {
          scores[j] = args.scale * FromElement(x[j]);
        }
        float largest = 0;
        double sum = 0;
        cpu.loops<float>().softmax_sum(scores.data(), seen, &largest, &sum);
        cpu.loops<float>().exp_scaled(scores.data(), seen, largest,
                                      static_cast<float>(1 / sum));
        for (int64_t j = 0; j < seen; ++j) y[j] = ToElement<T>(scores[j]);
        for (int64_t j = seen; j < keys; ++j) y[j] = ToElement<T>(0.0f);
      }
    });
  });
}

void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t keys = args.y.columns();
  const int64_t queries = args.y.dim(args.y.rank() - 2);
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), keys, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t seen = KeysSeen(row, queries, args.first_position);
        const T* const y = args.y.data<T>() + row * keys;
        const T* const dy = args.dy.data<T>() + row * keys;
        T* const dx = args.dx.data<T>() + row * keys;
        double sum = 0;
        for (int64_t j = 0; j < seen; ++j) {
          sum += double{FromElement(dy[j])} * FromElement(y[j]);
        }
        const float mean = static_cast<float>(sum);
        for (int64_t j = 0; j < seen; ++j) {
          dx[j] = ToElement<T>(args.scale * FromElement(y[j]) *
                               (FromElement(dy[j]) - mean));
        }
        for (int64_t j = seen; j < keys; ++j) dx[j] = ToElement<T>(0.0f);
      }
    });
  });
}

}  // namespace troupe::cpu
