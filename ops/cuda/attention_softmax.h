// The softmax of attention's forward, whose kernels meet the keys tile by tile.
#ifndef TROUPE_OPS_CUDA_ATTENTION_SOFTMAX_H_
#define TROUPE_OPS_CUDA_ATTENTION_SOFTMAX_H_

#include <cfloat>

#include "ops/cuda/attention_products.h"
#include "ops/cuda/attention_result.h"

namespace troupe::cuda {

// The softmax of each of a thread's rows over the keys so far.
template <typename Products>
struct OnlineSoftmax {
  float largest[Products::kThreadRows];  // of the scaled scores
  float sum[Products::kThreadRows];      // of this thread's columns

  __device__ OnlineSoftmax() {
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      largest[i] = -FLT_MAX;
      sum[i] = 0;
    }
  }

  // Takes up what earlier calls have found for the queries from `query` on: o,
  // their sum under the weight 1 of their logsumexp.
  template <typename T>
  __device__ void TakeUp(const RawAttention<T>& a, int sample, int head,
                         int query, typename Products::Sums& sums) {
    if (a.result.before.data == nullptr) return;
    ForEachSum<Products>(a.result.before.From(sample, head, a.head_dim, query),
                         [&](int i, int j, float before) {
                           sums[i][j] = before / a.dropout.keep_scale;
                         });
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      const int at = query + Products::Row(i);
      if (at >= a.q_length()) continue;
      const float before = a.logsumexp[a.RowOf(sample, head, at)] * kLog2E;
      if (before < -FLT_MAX) continue;  // of no keys
      largest[i] = before;
      sum[i] = Products::Column(0) == 0 ? 1 : 0;  // of one thread of the row
    }
  }

  // Turns scores into exp2(scale * score - largest), and scales down what was
  // gathered under a smaller `largest`. That is finite from the beginning, so
  // that a row may see none of the keys that it meets.
  __device__ void Weigh(float scale, typename Products::Scores& scores,
                        typename Products::Sums& sums) {
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      float top = scores[i][0];
#pragma unroll
      for (int j = 1; j < Products::kThreadColumns; ++j) {
        top = fmaxf(top, scores[i][j]);
      }
      const float before = largest[i];
      largest[i] = fmaxf(before, MaxOfRow<Products>(top) * scale);
      if (largest[i] != before) {  // rare after the first tiles
        const float shrink = Exp2(before - largest[i]);
        sum[i] *= shrink;
#pragma unroll
        for (int j = 0; j < Products::kThreadDims; ++j) sums[i][j] *= shrink;
      }
#pragma unroll
      for (int j = 0; j < Products::kThreadColumns; ++j) {
        scores[i][j] = Exp2(fmaf(scores[i][j], scale, -largest[i]));
        sum[i] += scores[i][j];
      }
    }
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_SOFTMAX_H_
