// GELU and its slope, for the kernels that apply them. The tanh form needs no
// tanh: with u = sqrt(2/pi) (x + 0.044715 x^3),
//
//   gelu(x) = x/2 (1 + tanh u) = x / (1 + e^(-2u)).
#ifndef TROUPE_OPS_CUDA_GELU_MATH_H_
#define TROUPE_OPS_CUDA_GELU_MATH_H_

namespace troupe::cuda {

constexpr float kGeluRoot = 0.7978845608028654f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

__device__ inline float ExpOfGeluInner(float x) {
  return __expf((x * (-2 * kGeluRoot)) * (1.0f + kGeluCubic * x * x));
}

__device__ inline float GeluOf(float x) {
  return x / (1.0f + ExpOfGeluInner(x));
}

// With s = 1 / (1 + e): d = s + x s (1 - s) 2u', and 1 - s = e s. Far out the
// second term is zero, but infinite times zero if x is not held back.
__device__ inline float GeluSlope(float x) {
  constexpr float kFar = 10.0f;  // e^(2u) is still finite, and its inverse 0
  const float near = fmaxf(-kFar, fminf(kFar, x));
  const float e = ExpOfGeluInner(near);
  const float s = 1.0f / (1.0f + e);
  const float slope = (2 * kGeluRoot) * (1.0f + (3 * kGeluCubic) * near * near);
  const float d = s + (near * slope) * (s * (e * s));
  return x == x ? d : x;
}

// The exact form: x P(x), P being the normal distribution's function.
__device__ inline float NormalBelow(float x) {
  return 0.5f + 0.5f * erff(x * 0.7071067811865476f);
}

// P(x) + x p(x), p being the density, which is zero far out.
__device__ inline float GeluExactSlope(float x) {
  constexpr float kFar = 30.0f;
  const float near = fmaxf(-kFar, fminf(kFar, x));
  const float density = 0.3989422804014327f * __expf(-0.5f * near * near);
  return NormalBelow(x) + near * density;
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_GELU_MATH_H_
