// The vectorised loops, one table of them for each instruction set. Plain
// pointers and counts: the kernels of ops/cpu divide the work over threads and
// call these for each thread's part (raw_args.h). Sources are compiled once for
// each set (vec.h says why this header must stay plain).
#ifndef TROUPE_OPS_CPU_SIMD_TABLE_H_
#define TROUPE_OPS_CPU_SIMD_TABLE_H_

#include <stdint.h>

#include "ops/cpu/simd/raw_args.h"

namespace troupe {

// The loops that touch activations or parameters, which are all of type T:
// float, uint16_t for bf16, or Fp16. Arithmetic is in f32, and each element
// stored is rounded once. Gradients of parameters are f32, or of type T where
// the name says so.
template <typename T>
struct ActivationLoops {
  void (*gelu)(const T* x, T* y, int64_t n);
  void (*gelu_backward)(const T* x, const T* dy, T* dx, int64_t n);
  void (*gelu_exact)(const T* x, T* y, int64_t n);  // with erf
  void (*gelu_exact_backward)(const T* x, const T* dy, T* dx, int64_t n);
  // One row, of this weight; backward returns the weight's gradient.
  void (*gelu_of_row)(const T* x, T* y, int64_t n, float weight);
  float (*gelu_of_row_backward)(const T* x, const T* dy, T* dx, int64_t n,
                                float weight);
  void (*swiglu)(const T* gate, const T* up, T* y, int64_t n, float weight);
  float (*swiglu_backward)(const T* gate, const T* up, const T* dy, T* d_gate,
                           T* d_up, int64_t n, float weight);
  // One row: c += bias; with `gelu`, pre (or null) = c + bias, c = gelu of it.
  void (*bias)(T* c, const T* bias, T* pre, bool gelu, int64_t n);
  // Each of `heads` rows that are `width` apart: columns i and i + half, i <
  // half, turn by the angle whose cosine and sine are cosines[i], sines[i].
  void (*rotate)(T* x, const float* cosines, const float* sines, int64_t half,
                 int64_t heads, int64_t width);
  // db[0, n) += sum over rows that are `stride` apart.
  void (*column_sum)(const T* dy, int64_t rows, int64_t stride, float* db,
                     int64_t n);
  void (*layer_norm)(const RawNorm<T>& args);
  void (*layer_norm_backward_input)(const RawNormBackward<T>& args);
  void (*layer_norm_backward_weight)(const RawNormBackward<T>& args);
  void (*rms_norm)(const RawNorm<T>& args);
  void (*rms_norm_backward_input)(const RawNormBackward<T>& args);
  void (*rms_norm_backward_weight)(const RawNormBackward<T>& args);
  void (*row_sums)(const RawRowSums<T>& args);
  void (*row_sums_backward)(const RawRowSumsBackward<T>& args);
  void (*split_norm)(const RawSplitNorm<T>& args);
  void (*split_norm_backward_input)(const RawSplitNormBackward<T>& args);
  // y = dropout(x) (+ residual, or null).
  void (*dropout)(const T* x, const T* residual, T* y, int64_t n,
                  const RawDropout& dropout);
  // The largest of a row and the sum of exp(x - largest).
  void (*softmax_sum)(const T* x, int64_t n, float* largest, double* sum);
  // x = exp(x - shift) * scale.
  void (*exp_scaled)(T* x, int64_t n, float shift, float scale);
  void (*adamw)(const RawAdamW<T, float>& args, int64_t n);
  void (*lion)(const RawLion<T, float>& args, int64_t n);
  void (*sgd)(const RawSgd<T, float>& args, int64_t n);
  void (*adamw_of_own)(const RawAdamW<T, T>& args, int64_t n);
  void (*lion_of_own)(const RawLion<T, T>& args, int64_t n);
  void (*sgd_of_own)(const RawSgd<T, T>& args, int64_t n);
  double (*sum_of_squares)(const T* x, int64_t n);
  // y += alpha * x.
  void (*add)(const T* x, float* y, int64_t n, float alpha);
  void (*add_to_own)(const T* x, T* y, int64_t n, float alpha);
  void (*add_f32)(const float* x, T* y, int64_t n, float alpha);
  void (*fill)(T* x, int64_t n, float value);
  void (*scale)(T* x, int64_t n, float alpha);
  void (*attention)(const RawAttention<T>& args);
  void (*attention_backward)(const RawAttention<T>& args);
  void (*from_f32)(const float* x, T* y, int64_t n);
  void (*to_f32)(const T* x, float* y, int64_t n);
  // Products in f32 (raw_args.h).
  void (*pack_rows)(const RawPack<T>& args);
  void (*pack_columns)(const RawPack<T>& args);
  void (*store_sums)(const RawStoreSums<T, T>& args);
  void (*store_sums_f32)(const RawStoreSums<T, float>& args);
};

struct SimdTable {
  const char* name;

  ActivationLoops<float> f32;
  ActivationLoops<uint16_t> bf16;
  ActivationLoops<Fp16> fp16;

  // Floats of scratch that attention needs, and the padded head_dim.
  int64_t (*attention_scratch)(int64_t q_length, int64_t kv_length,
                               int head_dim, int value_dim, bool backward);
  int (*padded_head_dim)(int head_dim);

  // Products in f32 of what is narrower (raw_args.h): how wide a strip of the
  // first operand is, and of the second.
  int product_rows, product_columns;
  void (*multiply_packed)(const RawPackedProduct& args);
};

namespace simd_baseline {
extern const SimdTable kTable;
}
namespace simd_avx2 {
extern const SimdTable kTable;
}
namespace simd_avx512 {
extern const SimdTable kTable;
}
namespace simd_avx512_bf16 {
extern const SimdTable kTable;
}

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_TABLE_H_
