#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {

template <typename T, typename G>
void AdamW(const RawAdamW<T, G>& a, int64_t n) {
  const float rest1 = 1.0f - a.beta1;
  const float rest2 = 1.0f - a.beta2;
  ForEachVec(n, [&](int64_t i, auto l) {
    const Vec g = Load(a.gradients + i, l) * a.gradient_scale;
    const Vec m = Load(a.first_moment + i, l) * a.beta1 + g * rest1;
    const Vec v = Load(a.second_moment + i, l) * a.beta2 + (g * g) * rest2;
    const Vec denominator = Sqrt(v) / a.root_scale + a.epsilon;
    const Vec w =
        Load(a.weights + i, l) * a.decay - (m / denominator) * a.step_size;
    Store(a.first_moment + i, m, l);
    Store(a.second_moment + i, v, l);
    Store(a.weights + i, w, l);
    if (a.parameters) Store(a.parameters + i, w, l);
    if (a.zero_gradients) Store(a.gradients + i, Vec{}, l);
  });
}

template <typename T, typename G>
void Lion(const RawLion<T, G>& a, int64_t n) {
  const float rest1 = 1.0f - a.beta1;
  const float rest2 = 1.0f - a.beta2;
  const Vec zero = Vec{}, up = Set(1.0f), down = Set(-1.0f);
  ForEachVec(n, [&](int64_t i, auto l) {
    const Vec g = Load(a.gradients + i, l) * a.gradient_scale;
    const Vec m = Load(a.moment + i, l);
    const Vec c = m * a.beta1 + g * rest1;
    const Vec sign = c > zero ? up : (c < zero ? down : c);  // 0, or NaN
    const Vec w = Load(a.weights + i, l) * a.decay - sign * a.learning_rate;
    Store(a.moment + i, m * a.beta2 + g * rest2, l);
    Store(a.weights + i, w, l);
    if (a.parameters) Store(a.parameters + i, w, l);
    if (a.zero_gradients) Store(a.gradients + i, Vec{}, l);
  });
}

template <typename T, typename G>
void Sgd(const RawSgd<T, G>& a, int64_t n) {
  ForEachVec(n, [&](int64_t i, auto l) {
    Vec w = Load(a.weights + i, l);
    const Vec g =
        Load(a.gradients + i, l) * a.gradient_scale + w * a.weight_decay;
    Vec step = g;
    if (a.momentum_buffer) {
      const Vec u = Load(a.momentum_buffer + i, l) * a.momentum + g;
      Store(a.momentum_buffer + i, u, l);
      step = a.nesterov ? g + u * a.momentum : u;
    }
    w -= step * a.learning_rate;
    Store(a.weights + i, w, l);
    if (a.parameters) Store(a.parameters + i, w, l);
    if (a.zero_gradients) Store(a.gradients + i, Vec{}, l);
  });
}

template void AdamW(const RawAdamW<float, float>&, int64_t);
template void Lion(const RawLion<float, float>&, int64_t);
template void Sgd(const RawSgd<float, float>&, int64_t);
template void AdamW(const RawAdamW<uint16_t, float>&, int64_t);
template void Lion(const RawLion<uint16_t, float>&, int64_t);
template void Sgd(const RawSgd<uint16_t, float>&, int64_t);
template void AdamW(const RawAdamW<uint16_t, uint16_t>&, int64_t);
template void Lion(const RawLion<uint16_t, uint16_t>&, int64_t);
template void Sgd(const RawSgd<uint16_t, uint16_t>&, int64_t);
template void AdamW(const RawAdamW<Fp16, float>&, int64_t);
template void Lion(const RawLion<Fp16, float>&, int64_t);
template void Sgd(const RawSgd<Fp16, float>&, int64_t);
template void AdamW(const RawAdamW<Fp16, Fp16>&, int64_t);
template void Lion(const RawLion<Fp16, Fp16>&, int64_t);
template void Sgd(const RawSgd<Fp16, Fp16>&, int64_t);

}  // namespace TROUPE_SIMD
}  // namespace troupe
