#include "ops/causal_softmax.h"

#include <algorithm>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// The keys that a row sees.
struct Seen {
  int64_t begin = 0;
  int64_t end = 0;
};
template <typename Args>
Seen SeenBy(const Args& args, int64_t row) {
  const int64_t queries = args.y.dim(args.y.rank() - 2);
  const int64_t position = args.first_position + row % queries;
  Seen seen = {.end = position + 1};
  if (!args.documents.defined()) return seen;
  const int64_t rows_of_sequence = args.y.rows() / args.documents.dim(0);
  const int64_t sequence = row / rows_of_sequence;
  seen.begin = args.documents.template data<
      int32_t>()[sequence * args.documents.stride(0) + position];
  return seen;
}

// Of a row, what no query sees becomes 0.
template <typename T>
void ClearUnseen(const Seen& seen, int64_t keys, T* row) {
  std::fill(row, row + seen.begin, ToElement<T>(0.0f));
  std::fill(row + seen.end, row + keys, ToElement<T>(0.0f));
}

}  // namespace

void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t keys = args.y.columns();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), keys, [&](int64_t begin, int64_t end) {
      std::vector<float> scores(keys);
      for (int64_t row = begin; row < end; ++row) {
        const Seen seen = SeenBy(args, row);
        const T* const x = args.x.data<T>() + row * keys;
        T* const y = args.y.data<T>() + row * keys;
        const int64_t count = seen.end - seen.begin;
        for (int64_t j = 0; j < count; ++j) {
          scores[j] = args.scale * FromElement(x[seen.begin + j]);
        }
        float largest = 0;
        double sum = 0;
        cpu.loops<float>().softmax_sum(scores.data(), count, &largest, &sum);
        cpu.loops<float>().exp_scaled(scores.data(), count, largest,
                                      static_cast<float>(1 / sum));
        for (int64_t j = 0; j < count; ++j) {
          y[seen.begin + j] = ToElement<T>(scores[j]);
        }
        ClearUnseen(seen, keys, y);
      }
    });
  });
}

void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t keys = args.y.columns();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    cpu.ForRows(args.y.rows(), keys, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const Seen seen = SeenBy(args, row);
        const T* const y = args.y.data<T>() + row * keys;
        const T* const dy = args.dy.data<T>() + row * keys;
        T* const dx = args.dx.data<T>() + row * keys;
        double sum = 0;
        for (int64_t j = seen.begin; j < seen.end; ++j) {
          sum += double{FromElement(dy[j])} * FromElement(y[j]);
        }
        const float mean = static_cast<float>(sum);
        for (int64_t j = seen.begin; j < seen.end; ++j) {
          dx[j] = ToElement<T>(args.scale * FromElement(y[j]) *
                               (FromElement(dy[j]) - mean));
        }
        ClearUnseen(seen, keys, dx);
      }
    });
  });
}

}  // namespace troupe::cpu
