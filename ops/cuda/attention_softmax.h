// The softmax of attention's forward, whose kernels meet the keys tile by tile.
#ifndef TROUPE_OPS_CUDA_ATTENTION_SOFTMAX_H_
#define TROUPE_OPS_CUDA_ATTENTION_SOFTMAX_H_

#include "ops/cuda/attention_products.h"

namespace troupe::cuda {

// The softmax of each of a thread's rows over the keys so far.
template <typename Products>
struct OnlineSoftmax {
  float largest[Products::kThreadRows];  // of the scaled scores
  float sum[Products::kThreadRows];      // of this thread's columns

  __device__ OnlineSoftmax() {
#pragma unroll
    for (int i = 0; i < Products::kThreadRows; ++i) {
      largest[i] = -INFINITY;
      sum[i] = 0;
    }
  }

  // Turns scores into exp2(scale * score - largest), and scales down what was
  // gathered under a smaller `largest`. REQUIRES that each row sees the first
  // key that it meets: `largest` is then finite from the first tile on.
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
