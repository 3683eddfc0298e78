#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
namespace {

// Beyond this the sigmoid is 0 or 1 to f32, and x times it is 0 or x: holding x
// back keeps infinite times zero out.
constexpr float kFar = 100.0f;

}  // namespace

template <typename T>
void SwiGlu(const T* gate, const T* up, T* y, int64_t n, float weight) {
  ForEachVec(n, [=](int64_t i, auto l) {
    const Vec x = Max(Set(-kFar), Load(gate + i, l));
    Store(y + i, (x / (1.0f + Exp(-x))) * Load(up + i, l) * weight, l);
  });
}

// With s = 1 / (1 + e) the sigmoid: silu' = s + x s (1 - s), and 1 - s = e s.
template <typename T>
float SwiGluBackward(const T* gate, const T* up, const T* dy, T* d_gate,
                     T* d_up, int64_t n, float weight) {
  Vec sum{};
  ForEachVec(n, [=, &sum](int64_t i, auto l) {
    const Vec x = Max(Set(-kFar), Load(gate + i, l));
    const Vec e = Exp(-x);
    const Vec s = 1.0f / (1.0f + e);
    const Vec slope = s + Min(Set(kFar), x) * (s * (e * s));
    const Vec of_y = Load(dy + i, l);
    const Vec u = Load(up + i, l);
    const Vec gradient = of_y * weight;
    sum += of_y * (x * s) * u;  // zero in lanes beyond n
    Store(d_up + i, gradient * (x * s), l);
    Store(d_gate + i, (gradient * u) * slope, l);
  });
  return Sum(sum);
}

template void SwiGlu(const float*, const float*, float*, int64_t, float);
template float SwiGluBackward(const float*, const float*, const float*, float*,
                              float*, int64_t, float);
template void SwiGlu(const uint16_t*, const uint16_t*, uint16_t*, int64_t,
                     float);
template float SwiGluBackward(const uint16_t*, const uint16_t*, const uint16_t*,
                              uint16_t*, uint16_t*, int64_t, float);
template void SwiGlu(const Fp16*, const Fp16*, Fp16*, int64_t, float);
template float SwiGluBackward(const Fp16*, const Fp16*, const Fp16*, Fp16*,
                              Fp16*, int64_t, float);

}  // namespace TROUPE_SIMD
}  // namespace troupe
