// The functions behind table.h, file by file; only table.cc reads this. The
// templates are instantiated, where they are defined, for the types of
// activations: float, uint16_t (bf16) and Fp16.
#ifndef TROUPE_OPS_CPU_SIMD_LOOPS_H_
#define TROUPE_OPS_CPU_SIMD_LOOPS_H_

#include "ops/cpu/simd/table.h"

namespace troupe {
namespace TROUPE_SIMD {

// gelu.cc
template <typename T>
void Gelu(const T* x, T* y, int64_t n);
template <typename T>
void GeluBackward(const T* x, const T* dy, T* dx, int64_t n);
template <typename T>
void GeluOfRow(const T* x, T* y, int64_t n, float weight);
template <typename T>
float GeluOfRowBackward(const T* x, const T* dy, T* dx, int64_t n,
                        float weight);
template <typename T>
void GeluExact(const T* x, T* y, int64_t n);
template <typename T>
void GeluExactBackward(const T* x, const T* dy, T* dx, int64_t n);
template <typename T>
void Bias(T* c, const T* bias, T* pre, bool gelu, int64_t n);

// swiglu.cc
template <typename T>
void SwiGlu(const T* gate, const T* up, T* y, int64_t n, float weight);
template <typename T>
float SwiGluBackward(const T* gate, const T* up, const T* dy, T* d_gate,
                     T* d_up, int64_t n, float weight);

// rotary.cc
template <typename T>
void Rotate(T* x, const float* cosines, const float* sines, int64_t half,
            int64_t heads, int64_t width);

// layer_norm.cc
template <typename T>
void LayerNorm(const RawNorm<T>& args);
template <typename T>
void LayerNormBackwardInput(const RawNormBackward<T>& args);
template <typename T>
void LayerNormBackwardWeight(const RawNormBackward<T>& args);

// rms_norm.cc
template <typename T>
void RmsNorm(const RawNorm<T>& args);
template <typename T>
void RmsNormBackwardInput(const RawNormBackward<T>& args);
template <typename T>
void RmsNormBackwardWeight(const RawNormBackward<T>& args);

// split_norm.cc
template <typename T>
void RowSums(const RawRowSums<T>& args);
template <typename T>
void RowSumsBackward(const RawRowSumsBackward<T>& args);
template <typename T>
void SplitNorm(const RawSplitNorm<T>& args);
template <typename T>
void SplitNormBackwardInput(const RawSplitNormBackward<T>& args);

// elementwise.cc
template <typename T>
void Dropout(const T* x, const T* residual, T* y, int64_t n,
             const RawDropout& dropout);
template <typename From, typename To>
void Add(const From* x, To* y, int64_t n, float alpha);
template <typename T>
void Fill(T* x, int64_t n, float value);
template <typename From, typename To>
void Cast(const From* x, To* y, int64_t n);
template <typename T>
void Scale(T* x, int64_t n, float alpha);

// reduce.cc
template <typename T>
void ColumnSum(const T* dy, int64_t rows, int64_t stride, float* db, int64_t n);
template <typename T>
void SoftmaxSum(const T* x, int64_t n, float* largest, double* sum);
template <typename T>
void ExpScaled(T* x, int64_t n, float shift, float scale);
template <typename T>
double SumOfSquares(const T* x, int64_t n);

// optimizer.cc
template <typename T, typename G>
void AdamW(const RawAdamW<T, G>& args, int64_t n);
template <typename T, typename G>
void Lion(const RawLion<T, G>& args, int64_t n);
template <typename T, typename G>
void Sgd(const RawSgd<T, G>& args, int64_t n);

// attention.cc, attention_backward.cc
template <typename T>
void Attention(const RawAttention<T>& args);
template <typename T>
void AttentionBackward(const RawAttention<T>& args);
int64_t AttentionScratch(int64_t q_length, int64_t kv_length, int head_dim,
                         int value_dim, bool backward);
int PaddedHeadDim(int head_dim);

// attention_few.cc: few queries read each key once, and packing keys would cost
// more than multiplying by them. Whether that is so, and their forward.
template <typename T>
bool IsOfFew(const RawAttention<T>& args);
template <typename T>
void AttentionOfFew(const RawAttention<T>& args);

// packed_product.cc
template <typename T>
void PackProductRows(const RawPack<T>& args);
template <typename T>
void PackProductColumns(const RawPack<T>& args);
void MultiplyPacked(const RawPackedProduct& args);
template <typename T, typename C>
void StoreSums(const RawStoreSums<T, C>& args);

}  // namespace TROUPE_SIMD
}  // namespace troupe

#endif  // TROUPE_OPS_CPU_SIMD_LOOPS_H_
