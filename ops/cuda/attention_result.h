// How the kernels of attention take up what earlier calls have found of a
// result, and store what they have found themselves.
#ifndef TROUPE_OPS_CUDA_ATTENTION_RESULT_H_
#define TROUPE_OPS_CUDA_ATTENTION_RESULT_H_

#include "ops/cuda/attention_heads.h"

namespace troupe::cuda {

// body(i, j, element) for each of a thread's sums [i][j] that is an element of
// these rows.
template <typename Products, typename T, typename Body>
__device__ void ForEachSum(const HeadRows<T>& rows, Body body) {
#pragma unroll
  for (int i = 0; i < Products::kThreadRows; ++i) {
    const int row = Products::Row(i);
    if (row >= rows.count) continue;
    T* const elements = rows.first + row * rows.stride;
#pragma unroll
    for (int j = 0; j < Products::kThreadDims; ++j) {
      const int dim = Products::Dim(j);
      if (dim < rows.columns) body(i, j, elements[dim]);
    }
  }
}

// The tile of a head's rows from `row` on = sums, each row times its factor,
// rounded once. `tile` is free: nobody reads it any more.
template <typename Products, typename T>
__device__ void StoreRows(const ResultOfHeads<T>& result, int sample, int head,
                          int head_dim, int row,
                          const float (&factors)[Products::kThreadRows],
                          const typename Products::Sums& sums,
                          const typename Products::RowTile& tile) {
  if (result.whole.data != nullptr) {
    ForEachSum<Products>(result.whole.From(sample, head, head_dim, row),
                         [&](int i, int j, float& element) {
                           element = sums[i][j] * factors[i];
                         });
    return;
  }
  Products::Put(sums, factors, tile);
  __syncthreads();
  tile.template Store<Products::kThreads>(
      result.rounded.From(sample, head, head_dim, row));
}

// The same of sums * factor + what was there before.
template <typename Products, typename T>
__device__ void StoreResult(const ResultOfHeads<T>& result, int sample,
                            int head, int head_dim, int row, float factor,
                            typename Products::Sums& sums,
                            const typename Products::RowTile& tile) {
  float factors[Products::kThreadRows];
#pragma unroll
  for (float& f : factors) f = factor;
  if (result.before.data != nullptr) {
    ForEachSum<Products>(result.before.From(sample, head, head_dim, row),
                         [&](int i, int j, float before) {
                           sums[i][j] = fmaf(sums[i][j], factor, before);
                         });
#pragma unroll
    for (float& f : factors) f = 1;
  }
  StoreRows<Products>(result, sample, head, head_dim, row, factors, sums, tile);
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_RESULT_H_
