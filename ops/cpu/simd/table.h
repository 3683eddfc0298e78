// The vectorised loops, one table of them for each instruction set. Plain
// pointers and counts: the kernels of ops/cpu divide the work over threads and
// call these for each thread's part. Sources are compiled three times (vec.h
// says why this header must stay plain).
#ifndef TROUPE_OPS_CPU_SIMD_TABLE_H_
#define TROUPE_OPS_CPU_SIMD_TABLE_H_

#include <stdint.h>

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

struct RawLayerNorm {
  int64_t rows, n;
  const float* x;
  const float* residual;  // or null
  float* sum;             // iff residual
  RawDropout dropout;
  const float *gamma, *beta;
  float epsilon;
  float* y;
  float *mean, *rstd;  // or both null
};

struct RawLayerNormBackward {
  int64_t rows, n;  // BackwardWeight: n columns of rows that are `stride` apart
  int64_t stride;
  const float *dy, *s, *gamma, *mean, *rstd;
  const float* residual_gradient;  // or null
  float* dx;
  float *dgamma, *dbeta;
};

struct RawAdamW {
  float *weights, *gradients, *first_moment, *second_moment;
  float* parameters;  // or null
  float beta1, beta2, epsilon;
  float decay;       // 1 - lr * weight_decay
  float step_size;   // lr / (1 - beta1^step)
  float root_scale;  // sqrt(1 - beta2^step)
  float gradient_scale;
  bool zero_gradients;
};

struct RawSgd {
  float *weights, *gradients;
  float* momentum_buffer;  // or null
  float* parameters;       // or null
  float learning_rate, momentum, weight_decay, gradient_scale;
  bool nesterov, zero_gradients;
};

// One head of one sample. Strides are between rows (positions). Backward writes
// dq and adds into dk and dv, which are dense [kv_length, padded head_dim].
struct RawAttention {
  const float *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
  float* o;
  int64_t o_stride;
  float* logsumexp;  // [q_length], or null in the forward
  int64_t q_length, kv_length;
  int64_t q_begin, q_end;  // the forward's queries
  int head_dim;
  float scale;
  RawDropout dropout;  // first_element: of query 0, key 0
  float* scratch;
  // backward
  const float* d_o;
  int64_t d_o_stride;
  float* dq;
  int64_t dq_stride;
  float *dk_sum, *dv_sum;
};

struct SimdTable {
  const char* name;

  void (*gelu)(const float* x, float* y, int64_t n);
  void (*gelu_backward)(const float* x, const float* dy, float* dx, int64_t n);
  // One row: c += bias; with `gelu`, pre (or null) = c + bias, c = gelu of it.
  void (*bias)(float* c, const float* bias, float* pre, bool gelu, int64_t n);
  // db[0, n) += sum over rows that are `stride` apart.
  void (*column_sum)(const float* dy, int64_t rows, int64_t stride, float* db,
                     int64_t n);
  void (*layer_norm)(const RawLayerNorm& args);
  void (*layer_norm_backward_input)(const RawLayerNormBackward& args);
  void (*layer_norm_backward_weight)(const RawLayerNormBackward& args);
  void (*dropout)(const float* x, const float* residual, float* y, int64_t n,
                  const RawDropout& dropout);
  // The largest of a row and the sum of exp(x - largest).
  void (*softmax_sum)(const float* x, int64_t n, float* largest, double* sum);
  // x = exp(x - shift) * scale.
  void (*exp_scaled)(float* x, int64_t n, float shift, float scale);
  void (*adamw)(const RawAdamW& args, int64_t n);
  void (*sgd)(const RawSgd& args, int64_t n);
  double (*sum_of_squares)(const float* x, int64_t n);
  void (*add)(const float* x, float* y, int64_t n, float alpha);
  void (*scale)(float* x, int64_t n, float alpha);
  void (*fill)(float* x, int64_t n, float value);
  void (*attention)(const RawAttention& args);
  void (*attention_backward)(const RawAttention& args);
  // Floats of scratch that the two need, and the padded head_dim.
  int64_t (*attention_scratch)(int64_t q_length, int64_t kv_length,
                               int head_dim, bool backward);
  int (*padded_head_dim)(int head_dim);
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

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_TABLE_H_
