// A warp has a row of logits. Experts are chosen one after the other, each time
// the largest key that is left: keys are numbers of 64 bits of which the upper
// half rises with s + bias, NaN above all, and the lower falls with the expert,
// so that their maximum knows no ties.
#include <cmath>

#include "ops/activation_type.h"
#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/report.h"
#include "ops/device.h"
#include "ops/route.h"

namespace troupe::cuda {
namespace {

using Key = unsigned long long;  // of atomics and shuffles

// Rising with the value, at least 1; 0 is for what cannot be chosen.
__device__ inline uint32_t Rising(float value) {
  if (isnan(value)) return 0xffffffffu;
  const uint32_t bits = __float_as_uint(value + 0.0f);  // no -0
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline Key KeyOf(uint32_t rising, int64_t index) {
  return rising == 0
             ? 0
             : Key{rising} << 32 | (0xffffffffu - static_cast<uint32_t>(index));
}
__device__ inline int32_t IndexOf(Key key) {
  return static_cast<int32_t>(0xffffffffu - static_cast<uint32_t>(key));
}

__device__ inline Key WarpMax(Key value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const Key other = __shfl_xor_sync(kAllLanes, value, distance);
    value = other > value ? other : value;
  }
  return value;
}
__device__ inline float WarpMax(float value) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, distance));
  }
  return value;
}

// The index of the largest of n numbers above 0, in all lanes; it is 0 then.
__device__ inline int32_t TakeLargest(uint32_t* rising, int64_t n) {
  Key best = 0;
  for (int64_t i = threadIdx.x; i < n; i += kWarp) {
    const Key key = KeyOf(rising[i], i);
    best = key > best ? key : best;
  }
  const int32_t index = IndexOf(WarpMax(best));
  __syncwarp();
  if (threadIdx.x == 0) rising[index] = 0;
  __syncwarp();
  return index;
}

__device__ inline float Sigmoid(float x) {
  const float far = -x > 88.0f ? 88.0f : -x;  // NaN stays
  return 1.0f / (1.0f + expf(far));
}

// The sum of the two largest of a group's keys, or the one there is.
__device__ inline float GroupScore(const float* keys, int64_t count) {
  float first = keys[0], second = 0;
  for (int64_t i = 1; i < count; ++i) {
    const float key = keys[i];
    if (Rising(key) > Rising(first)) {
      second = first;
      first = key;
    } else if (i == 1 || Rising(key) > Rising(second)) {
      second = key;
    }
  }
  return count == 1 ? first : first + second;
}

template <typename B>
struct RawRoute {
  const float* logits;
  const B* bias;  // or null
  RouteRule rule;
  float* scores;
  int32_t* choices;
  float* gates;
  float* logsumexp;  // or null
  int64_t e, k;
};

// Writes the row's scores, and its keys to shared memory.
template <typename B>
__device__ inline void Score(const RawRoute<B>& a, int64_t row, float* keys) {
  const float* const x = a.logits + row * a.e;
  float* const s = a.scores + row * a.e;
  const bool softmax = a.rule.scores == RouteScores::kSoftmax;
  float largest = -INFINITY, factor = 1;
  if (softmax || a.logsumexp != nullptr) {
    for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
      largest = fmaxf(largest, x[i]);
    }
    largest = WarpMax(largest);
    double sum = 0;
    for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
      sum += expf(x[i] - largest);
    }
    sum = WarpSum(sum);
    factor = static_cast<float>(1 / sum);
    if (a.logsumexp != nullptr && threadIdx.x == 0) {
      a.logsumexp[row] = static_cast<float>(largest + log(sum));
    }
  }
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    const float score = softmax ? expf(x[i] - largest) * factor : Sigmoid(x[i]);
    s[i] = score;
    keys[i] = a.bias == nullptr ? score : score + Widened(a.bias[i]);
  }
  __syncwarp();
}

template <typename B>
__global__ void RouteKernel(RawRoute<B> a) {
  const int64_t row = blockIdx.x;
  float* const keys = DynamicShared<float>();
  uint32_t* const rising = reinterpret_cast<uint32_t*>(keys + a.e);
  uint32_t* const groups = rising + a.e;
  uint32_t* const used = groups + a.rule.groups;
  Score(a, row, keys);
  const int64_t in_group = a.e / a.rule.groups;
  const bool all = a.rule.groups_used == a.rule.groups;
  for (int group = threadIdx.x; group < a.rule.groups; group += kWarp) {
    used[group] = all;
    if (!all)
      groups[group] = Rising(GroupScore(keys + group * in_group, in_group));
  }
  __syncwarp();
  for (int i = 0; !all && i < a.rule.groups_used; ++i) {
    const int32_t group = TakeLargest(groups, a.rule.groups);
    if (threadIdx.x == 0) used[group] = 1;
  }
  __syncwarp();
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    rising[i] = used[i / in_group] != 0 ? Rising(keys[i]) : 0;
  }
  __syncwarp();
  int32_t* const choices = a.choices + row * a.k;
  const float* const s = a.scores + row * a.e;
  double sum = 0;
  for (int64_t j = 0; j < a.k; ++j) {
    const int32_t choice = TakeLargest(rising, a.e);
    if (threadIdx.x == 0) choices[j] = choice;
    sum += s[choice];
  }
  __syncwarp();
  if (!a.rule.renormalise) sum = 1;
  for (int64_t j = threadIdx.x; j < a.k; j += kWarp) {
    a.gates[row * a.k + j] =
        static_cast<float>(a.rule.scale * (s[choices[j]] / sum));
  }
}

struct RawRouteBackward {
  const float* scores;
  const int32_t* choices;
  const float* d_gates;
  RouteRule rule;
  const float* d_scores;     // or null
  const float* d_logsumexp;  // or null
  const float* logsumexp;    // with d_logsumexp and sigmoid
  const float* logits;       // the same
  float* d_logits;
  int64_t e, k;
  Fault* fault;
};

// ds += the gradient by the gates; on one lane, in the order of the choices.
__device__ inline void AddGateGradient(const RawRouteBackward& a, int64_t row,
                                       const float* s, double* ds) {
  const int32_t* const choices = a.choices + row * a.k;
  const float* const d_gates = a.d_gates + row * a.k;
  double sum = 0, mean = 0;
  for (int64_t j = 0; j < a.k; ++j) {
    const int32_t choice = choices[j];
    if (choice < 0 || choice >= a.e) {
      return Report(a.fault, {.kind = FaultKind::kExpert,
                              .value = choice,
                              .index = row * a.k + j,
                              .limit = a.e});
    }
    sum += s[choice];
    mean += double{d_gates[j]} * s[choice];
  }
  mean = a.rule.renormalise ? mean / sum : 0;
  if (!a.rule.renormalise) sum = 1;
  for (int64_t j = 0; j < a.k; ++j) {
    ds[choices[j]] += a.rule.scale * (d_gates[j] - mean) / sum;
  }
}

__global__ void RouteBackwardKernel(RawRouteBackward a) {
  const int64_t row = blockIdx.x;
  double* const ds = DynamicShared<double>();
  const float* const s = a.scores + row * a.e;
  float* const dx = a.d_logits + row * a.e;
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    ds[i] = a.d_scores == nullptr ? 0.0 : a.d_scores[row * a.e + i];
  }
  __syncwarp();
  if (threadIdx.x == 0) AddGateGradient(a, row, s, ds);
  __syncwarp();
  const double d_logsumexp =
      a.d_logsumexp == nullptr ? 0.0 : a.d_logsumexp[row];
  if (a.rule.scores == RouteScores::kSoftmax) {
    double mean = 0;
    for (int64_t i = threadIdx.x; i < a.e; i += kWarp) mean += s[i] * ds[i];
    mean = WarpSum(mean) - d_logsumexp;  // its slope is the softmax
    for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
      dx[i] = static_cast<float>(s[i] * (ds[i] - mean));
    }
    return;
  }
  for (int64_t i = threadIdx.x; i < a.e; i += kWarp) {
    double gradient = ds[i] * s[i] * (1.0 - s[i]);
    if (a.d_logsumexp != nullptr) {
      gradient +=
          d_logsumexp * expf(a.logits[row * a.e + i] - a.logsumexp[row]);
    }
    dx[i] = static_cast<float>(gradient);
  }
}

// A thread has a choice.
__global__ void LoadKernel(const int32_t* choices, int64_t count, int64_t k,
                           int64_t first, int64_t tokens, int64_t e,
                           bool by_choice, float* load, Fault* fault) {
  const int64_t at = FlatBegin(1);
  if (at >= count) return;
  const int32_t choice = choices[at];
  if (choice < 0 || choice >= e) {
    return Report(fault, {.kind = FaultKind::kExpert,
                          .value = choice,
                          .index = at,
                          .limit = e});
  }
  const int64_t sequence = tokens == 0 ? 0 : (first + at / k) / tokens;
  const int64_t row = by_choice ? sequence * k + at % k : sequence;
  atomicAdd(load + row * e + choice, 1.0f);
}

LaunchShape WarpForEach(int64_t rows, size_t shared_bytes) {
  return {.grid = dim3(static_cast<unsigned>(rows)),
          .block = dim3(kWarp),
          .shared_bytes = shared_bytes};
}

}  // namespace

void Route(Device& device, const RouteArgs& args) {
  const int64_t e = args.logits.columns();
  const size_t shared = (2 * e + 2 * int64_t{args.rule.groups}) * sizeof(float);
  const DType type = args.bias.defined() ? args.bias.dtype() : DType::kF32;
  WithActivationType(type, [&]<typename B>() {
    Launch(CudaOf(device), RouteKernel<B>,
           WarpForEach(args.logits.rows(), shared),
           {.logits = args.logits.data<float>(),
            .bias = DataFrom<B>(args.bias, 0),
            .rule = args.rule,
            .scores = args.scores.data<float>(),
            .choices = args.choices.data<int32_t>(),
            .gates = args.gates.data<float>(),
            .logsumexp = DataFrom<float>(args.logsumexp, 0),
            .e = e,
            .k = args.choices.columns()});
  });
}

void RouteBackward(Device& device, const RouteBackwardArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  const int64_t n = args.scores.rows(), e = args.scores.columns();
  Launch(cuda, RouteBackwardKernel, WarpForEach(n, e * sizeof(double)),
         {.scores = args.scores.data<float>(),
          .choices = args.choices.data<int32_t>(),
          .d_gates = args.d_gates.data<float>(),
          .rule = args.rule,
          .d_scores = DataFrom<float>(args.d_scores, 0),
          .d_logsumexp = DataFrom<float>(args.d_logsumexp, 0),
          .logsumexp = DataFrom<float>(args.logsumexp, 0),
          .logits = DataFrom<float>(args.logits, 0),
          .d_logits = args.d_logits.data<float>(),
          .e = e,
          .k = args.choices.columns(),
          .fault = FaultOf(cuda)});
}

// Counts are whole numbers: the order in which they are added does not matter.
void RouteLoad(Device& device, const RouteLoadArgs& args) {
  CudaDevice& cuda = CudaOf(device);
  if (!args.accumulate) device.Zero(args.load.raw(), args.load.bytes());
  const int64_t count = args.choices.elements();
  if (count == 0) return;
  Launch(cuda, LoadKernel, FlatShape(count, 1), args.choices.data<int32_t>(),
         count, args.choices.columns(), args.rows.first, args.rows.tokens,
         args.load.columns(), args.by_choice, args.load.data<float>(),
         FaultOf(cuda));
}

}  // namespace troupe::cuda
