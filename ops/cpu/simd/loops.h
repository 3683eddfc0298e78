// The functions behind table.h, file by file; only table.cc reads this.
#ifndef TROUPE_OPS_CPU_SIMD_LOOPS_H_
#define TROUPE_OPS_CPU_SIMD_LOOPS_H_

#include "ops/cpu/simd/table.h"

namespace troupe {
namespace TROUPE_SIMD {

// gelu.cc
void Gelu(const float* x, float* y, int64_t n);
void GeluBackward(const float* x, const float* dy, float* dx, int64_t n);
void Bias(float* c, const float* bias, float* pre, bool gelu, int64_t n);

// layer_norm.cc
void LayerNorm(const RawLayerNorm& args);
void LayerNormBackwardInput(const RawLayerNormBackward& args);
void LayerNormBackwardWeight(const RawLayerNormBackward& args);

// elementwise.cc
void Dropout(const float* x, const float* residual, float* y, int64_t n,
             const RawDropout& dropout);
void Add(const float* x, float* y, int64_t n, float alpha);
void Scale(float* x, int64_t n, float alpha);
void Fill(float* x, int64_t n, float value);

// reduce.cc
void ColumnSum(const float* dy, int64_t rows, int64_t stride, float* db,
               int64_t n);
double SumOfSquares(const float* x, int64_t n);
void SoftmaxSum(const float* x, int64_t n, float* largest, double* sum);
void ExpScaled(float* x, int64_t n, float shift, float scale);

// optimizer.cc
void AdamW(const RawAdamW& args, int64_t n);
void Sgd(const RawSgd& args, int64_t n);

// attention.cc, attention_backward.cc
void Attention(const RawAttention& args);
void AttentionBackward(const RawAttention& args);
int64_t AttentionScratch(int64_t q_length, int64_t kv_length, int head_dim,
                         bool backward);
int PaddedHeadDim(int head_dim);

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_LOOPS_H_
