#include <cmath>
#include <vector>

#include "ops/cuda/elements.h"
#include "ops/cuda/kernels.h"
#include "ops/cuda/launch.h"
#include "ops/optimizer.h"

namespace troupe::cuda {
namespace {

constexpr int n = 4;  // elements of a thread: 16 bytes of each f32 state

// Where weight decay ends and begins, in turn.
struct DecayTurns {
  int count = 0;
  int64_t at[kDecayTurnsMax];
};

DecayTurns ToRaw(const std::vector<int64_t>& turns) {
  DecayTurns raw;
  for (const int64_t turn : turns) raw.at[raw.count++] = turn;
  return raw;
}

// decays[i]: whether element begin + i does. Nearly always all n are alike.
__device__ inline void FindDecay(const DecayTurns& turns, int64_t begin,
                                 bool (&decays)[n]) {
  int low = 0, high = turns.count;  // how many turns are at `begin` or before
  while (low < high) {
    const int middle = (low + high) / 2;
    if (turns.at[middle] <= begin) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
#pragma unroll
  for (int i = 0; i < n; ++i) {
    while (low < turns.count && turns.at[low] <= begin + i) ++low;
    decays[i] = low % 2 == 0;
  }
}

// T is the type of the copy of the weights, G of the gradients.
template <typename T, typename G>
struct RawAdamW {
  float* weights;
  G* gradients;
  float *first_moment, *second_moment;
  T* parameters;  // or null
  float beta1, beta2, epsilon;
  float decay;       // 1 - lr * weight_decay
  float step_size;   // lr / (1 - beta1^step)
  float root_scale;  // sqrt(1 - beta2^step)
  float gradient_scale;
  bool zero_gradients, aligned;
  DecayTurns turns;
};

template <typename T, typename G>
__global__ void AdamWKernel(const __grid_constant__ RawAdamW<T, G> a,
                            int64_t count) {
  const int64_t begin = FlatBegin(n), rest = count - begin;
  if (rest <= 0) return;
  float w[n], g[n], m[n], v[n];
  Load(a.weights + begin, rest, a.aligned, w);
  Load(a.gradients + begin, rest, a.aligned, g);
  Load(a.first_moment + begin, rest, a.aligned, m);
  Load(a.second_moment + begin, rest, a.aligned, v);
  bool decays[n];
  FindDecay(a.turns, begin, decays);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    g[i] *= a.gradient_scale;
    m[i] = m[i] * a.beta1 + g[i] * (1.0f - a.beta1);
    v[i] = v[i] * a.beta2 + (g[i] * g[i]) * (1.0f - a.beta2);
    const float denominator = sqrtf(v[i]) / a.root_scale + a.epsilon;
    w[i] = w[i] * (decays[i] ? a.decay : 1.0f) -
           (m[i] / denominator) * a.step_size;
    g[i] = 0;
  }
  Store(a.first_moment + begin, rest, a.aligned, m);
  Store(a.second_moment + begin, rest, a.aligned, v);
  Store(a.weights + begin, rest, a.aligned, w);
  if (a.parameters != nullptr) {
    Store(a.parameters + begin, rest, a.aligned, w);
  }
  if (a.zero_gradients) Store(a.gradients + begin, rest, a.aligned, g);
}

template <typename T, typename G>
struct RawLion {
  float* weights;
  G* gradients;
  float* moment;
  T* parameters;  // or null
  float beta1, beta2;
  float decay;  // 1 - lr * weight_decay
  float learning_rate, gradient_scale;
  bool zero_gradients, aligned;
  DecayTurns turns;
};

template <typename T, typename G>
__global__ void LionKernel(const __grid_constant__ RawLion<T, G> a,
                           int64_t count) {
  const int64_t begin = FlatBegin(n), rest = count - begin;
  if (rest <= 0) return;
  float w[n], g[n], m[n];
  Load(a.weights + begin, rest, a.aligned, w);
  Load(a.gradients + begin, rest, a.aligned, g);
  Load(a.moment + begin, rest, a.aligned, m);
  bool decays[n];
  FindDecay(a.turns, begin, decays);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    g[i] *= a.gradient_scale;
    const float c = m[i] * a.beta1 + g[i] * (1.0f - a.beta1);
    const float sign = c > 0 ? 1.0f : c < 0 ? -1.0f : c;  // 0, or NaN
    w[i] = w[i] * (decays[i] ? a.decay : 1.0f) - sign * a.learning_rate;
    m[i] = m[i] * a.beta2 + g[i] * (1.0f - a.beta2);
    g[i] = 0;
  }
  Store(a.moment + begin, rest, a.aligned, m);
  Store(a.weights + begin, rest, a.aligned, w);
  if (a.parameters != nullptr) {
    Store(a.parameters + begin, rest, a.aligned, w);
  }
  if (a.zero_gradients) Store(a.gradients + begin, rest, a.aligned, g);
}

template <typename T, typename G>
struct RawSgd {
  float* weights;
  G* gradients;
  float* momentum_buffer;  // or null
  T* parameters;           // or null
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov, zero_gradients, aligned;
  DecayTurns turns;
};

template <typename T, typename G>
__global__ void SgdKernel(const __grid_constant__ RawSgd<T, G> a,
                          int64_t count) {
  const int64_t begin = FlatBegin(n), rest = count - begin;
  if (rest <= 0) return;
  float w[n], g[n], u[n];
  Load(a.weights + begin, rest, a.aligned, w);
  Load(a.gradients + begin, rest, a.aligned, g);
  const bool momentum = a.momentum_buffer != nullptr;
  if (momentum) Load(a.momentum_buffer + begin, rest, a.aligned, u);
  bool decays[n];
  FindDecay(a.turns, begin, decays);
#pragma unroll
  for (int i = 0; i < n; ++i) {
    g[i] = g[i] * a.gradient_scale + w[i] * (decays[i] ? a.weight_decay : 0.0f);
    float step = g[i];
    if (momentum) {
      u[i] = u[i] * a.momentum + g[i];
      step = a.nesterov ? g[i] + u[i] * a.momentum : u[i];
    }
    w[i] -= step * a.learning_rate;
    g[i] = 0;
  }
  if (momentum) Store(a.momentum_buffer + begin, rest, a.aligned, u);
  Store(a.weights + begin, rest, a.aligned, w);
  if (a.parameters != nullptr) {
    Store(a.parameters + begin, rest, a.aligned, w);
  }
  if (a.zero_gradients) Store(a.gradients + begin, rest, a.aligned, g);
}

}  // namespace

void AdamW(Device& device, const AdamWArgs& args) {
  const double step = static_cast<double>(args.step);
  const double correction1 = 1.0 - std::pow(double{args.beta1}, step);
  const double correction2 = 1.0 - std::pow(double{args.beta2}, step);
  const double lr = args.learning_rate;
  const int64_t count = args.weights.elements();
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    RawAdamW<T, G> raw = {
        .weights = args.weights.data<float>(),
        .gradients = args.gradients.data<G>(),
        .first_moment = args.first_moment.data<float>(),
        .second_moment = args.second_moment.data<float>(),
        .parameters = DataFrom<T>(args.parameters, 0),
        .beta1 = args.beta1,
        .beta2 = args.beta2,
        .epsilon = args.epsilon,
        .decay = static_cast<float>(1.0 - lr * args.weight_decay),
        .step_size = static_cast<float>(lr / correction1),
        .root_scale = static_cast<float>(std::sqrt(correction2)),
        .gradient_scale = args.gradient_scale,
        .zero_gradients = args.zero_gradients,
        .turns = ToRaw(args.decay_turns)};
    raw.aligned = Aligned<n>(raw.weights, raw.gradients, raw.first_moment,
                             raw.second_moment, raw.parameters);
    Launch(CudaOf(device), AdamWKernel<T, G>, FlatShape(count, n), raw, count);
  });
}

void Lion(Device& device, const LionArgs& args) {
  const double lr = args.learning_rate;
  const int64_t count = args.weights.elements();
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    RawLion<T, G> raw = {
        .weights = args.weights.data<float>(),
        .gradients = args.gradients.data<G>(),
        .moment = args.moment.data<float>(),
        .parameters = DataFrom<T>(args.parameters, 0),
        .beta1 = args.beta1,
        .beta2 = args.beta2,
        .decay = static_cast<float>(1.0 - lr * args.weight_decay),
        .learning_rate = args.learning_rate,
        .gradient_scale = args.gradient_scale,
        .zero_gradients = args.zero_gradients,
        .turns = ToRaw(args.decay_turns)};
    raw.aligned = Aligned<n>(raw.weights, raw.gradients, raw.moment,
                             raw.parameters);
    Launch(CudaOf(device), LionKernel<T, G>, FlatShape(count, n), raw, count);
  });
}

void Sgd(Device& device, const SgdArgs& args) {
  const int64_t count = args.weights.elements();
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    RawSgd<T, G> raw = {
        .weights = args.weights.data<float>(),
        .gradients = args.gradients.data<G>(),
        .momentum_buffer = DataFrom<float>(args.momentum_buffer, 0),
        .parameters = DataFrom<T>(args.parameters, 0),
        .learning_rate = args.learning_rate,
        .momentum = args.momentum,
        .weight_decay = args.weight_decay,
        .gradient_scale = args.gradient_scale,
        .nesterov = args.nesterov,
        .zero_gradients = args.zero_gradients,
        .turns = ToRaw(args.decay_turns)};
    raw.aligned = Aligned<n>(raw.weights, raw.gradients, raw.momentum_buffer,
                             raw.parameters);
    Launch(CudaOf(device), SgdKernel<T, G>, FlatShape(count, n), raw, count);
  });
}

}  // namespace troupe::cuda
