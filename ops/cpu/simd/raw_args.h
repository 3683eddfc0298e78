// The arguments of the vectorised loops that take many: plain pointers and
// counts, as table.h says. T is the type of activations and parameters: float,
// uint16_t for bf16, or Fp16. G is that of their gradients: T or float.
#ifndef TROUPE_OPS_CPU_SIMD_RAW_ARGS_H_
#define TROUPE_OPS_CPU_SIMD_RAW_ARGS_H_

#include <stdint.h>

#include "ops/attention_part.h"
#include "ops/fp16.h"

namespace troupe {

// A PhiloxStream, laid out as the counter and key words it stands for.
struct RawPhilox {
  uint32_t key0, key1;
  uint32_t counter2, counter3;
};

// Element e is kept iff (number e >> 8) >= threshold. Threshold 0: no dropout.
struct RawDropout {
  RawPhilox philox;
  uint32_t threshold;
  float keep_scale;
  uint64_t first_element;
};

// Layer norm and RMS norm; `beta` and `mean` are layer norm's only.
template <typename T>
struct RawNorm {
  int64_t rows, n;
  const T* x;
  const T* residual;  // or null
  T* sum;             // iff residual
  RawDropout dropout;
  const T *gamma, *beta;
  float epsilon;
  T* y;
  float *mean, *rstd;  // or null
};

// BackwardInput and BackwardWeight of both: `mean` and `dbeta` as above.
template <typename T>
struct RawNormBackward {
  int64_t rows, n;  // BackwardWeight: n columns of rows that are `stride` apart
  int64_t stride;
  const T *dy, *s, *gamma;
  const float *mean, *rstd;
  const T* residual_gradient;  // or null
  T* dx;
  float *dgamma, *dbeta;
};

// Norms of rows of `columns`, n of which are here (ops/split_norm.h). RowSums
// and their gradients are [rows, 2].
template <typename T>
struct RawRowSums {
  int64_t rows, n;
  const T* x;
  double* row_sums;
};

template <typename T>
struct RawRowSumsBackward {
  int64_t rows, n;
  const T* x;
  const double* row_sums_gradient;
  const T* residual_gradient;  // or null
  T* dx;
};

template <typename T>
struct RawSplitNorm {
  int64_t rows, n;
  int64_t columns;
  const T* x;
  const double* row_sums;
  const T *gamma, *beta;  // beta: or null
  bool centred;
  float epsilon;
  T* y;
  float *mean, *rstd;  // or null
};

template <typename T>
struct RawSplitNormBackward {
  int64_t rows, n;
  int64_t columns;
  const T *dy, *x, *gamma;
  const float *mean, *rstd;    // mean: null for RMS norm
  const T* residual_gradient;  // or null
  T* dx;
  double* row_sums_gradient;
};

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
  bool zero_gradients;
};

template <typename T, typename G>
struct RawLion {
  float* weights;
  G* gradients;
  float* moment;
  T* parameters;  // or null
  float beta1, beta2;
  float decay;  // 1 - lr * weight_decay
  float learning_rate, gradient_scale;
  bool zero_gradients;
};

template <typename T, typename G>
struct RawSgd {
  float* weights;
  G* gradients;
  float* momentum_buffer;  // or null
  T* parameters;           // or null
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov, zero_gradients;
};

// A result of attention: rows of T, or of f32, that are `stride` apart. What
// earlier calls have found of it is f32, or null.
template <typename T>
struct RawResult {
  T* rounded;
  float* whole;  // instead of `rounded`
  int64_t stride;
  const float* before;
  int64_t before_stride;
};

// Heads of one sample that read the same kv head, side by side: `heads` in the
// forward, one in the backward. Strides are between rows (positions). Heads of
// q and k have head_dim columns, those of v and o value_dim. Backward writes dq
// and adds into dk and dv, which are dense [kv_length, padded head_dim] and
// [kv_length, padded value_dim].
template <typename T>
struct RawAttention {
  const T *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
  RawResult<T> result;  // o, in the backward dq
  float* logsumexp;     // [heads, q_length], or null in the forward
  int64_t q_length, kv_length;
  AttentionPart part;
  const int32_t* documents;  // of the sample's positions, or null
  int64_t q_begin, q_end;    // the forward's queries
  int heads;
  int head_dim;
  int value_dim;
  float scale;
  RawDropout dropout;  // first_element: of head 0, of positions 0 and 0
  float* scratch;
  // backward
  const T *o, *d_o;
  int64_t o_stride, d_o_stride;
  float *dk_sum, *dv_sum;
};

// One operand of a product of matrices of T, widened to f32 and packed for
// RawPackedProduct. Element (i, p), i along the result and p along what is
// contracted, is from[i * stride + p * step]; one of the two is 1. `to` takes
// strips of neighbouring i, as wide as table.h says, each [depth, width], one
// after the other; those past `count` are zero.
template <typename T>
struct RawPack {
  const T* from;
  int64_t stride, step;
  int64_t count, depth;
  float* to;
};

// sums (+)= a b. Each pair of strips has a dense tile of sums, that of (i, j)
// at i * b_strips + j.
struct RawPackedProduct {
  const float *a, *b;
  int64_t depth;
  int64_t rows;  // of a: the last strip's others are left out
  int64_t a_strips, b_strips;
  float* sums;
  bool accumulate;
};

// c (+)= the sums of RawPackedProduct (+ bias), each rounded once. C is T or
// float.
template <typename T, typename C>
struct RawStoreSums {
  const float* sums;
  int64_t b_strips;
  int64_t rows, columns;
  const T* bias;  // or null
  C* c;
  int64_t c_stride;
  bool accumulate;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_RAW_ARGS_H_
