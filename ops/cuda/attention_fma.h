// The same two products as attention_mma.h has, over f32 tiles and in f32
// throughout: no tensor core multiplies f32 without losing bits of it. What
// they offer to a kernel is alike, so that the kernels are written once.
//
// The 256 threads are 16 by 16: a thread holds some rows 16 apart, and of the
// scores some columns 16 apart, of the sums four in each 64.
#ifndef TROUPE_OPS_CUDA_ATTENTION_FMA_H_
#define TROUPE_OPS_CUDA_ATTENTION_FMA_H_

#include "ops/cuda/attention_tile.h"

namespace troupe::cuda {

template <int kDim_, int kThreadRows_, int kThreadColumns_>
struct FmaProducts {
  using Element = float;
  static constexpr int kDim = kDim_;
  static constexpr int kThreadRows = kThreadRows_;
  static constexpr int kThreadColumns = kThreadColumns_;
  static constexpr int kThreadDims = kDim / 16;
  static constexpr int kRows = 16 * kThreadRows;
  static constexpr int kColumns = 16 * kThreadColumns;
  static constexpr int kThreads = 256;
  static constexpr int kLanesOfRow = 16;
  using RowTile = Tile<Element, kRows, kDim>;
  using ColumnTile = Tile<Element, kColumns, kDim>;
  using Scores = float[kThreadRows][kThreadColumns];
  using Sums = float[kThreadRows][kThreadDims];

  // Weights pass from the thread that holds them to those that multiply with
  // them, which are in its warp.
  static constexpr int kExchangePitch = kColumns + 4;
  static constexpr int kExchangeBytes = kRows * kExchangePitch * sizeof(float);

  static __device__ int Row(int i) { return threadIdx.x / 16 + 16 * i; }
  static __device__ int Column(int j) { return threadIdx.x % 16 + 16 * j; }
  static __device__ int FirstDim() { return 0; }
  static __device__ int Dim(int j) {
    return j / 4 * 64 + threadIdx.x % 16 * 4 + j % 4;
  }

  static __device__ float4 Four(const float* from) {
    return *reinterpret_cast<const float4*>(from);
  }

  static __device__ void Multiply(const RowTile& rows,
                                  const ColumnTile& columns, Scores& scores) {
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) scores[i][j] = 0;
    }
#pragma unroll 4
    for (int k = 0; k < kDim; k += 4) {
      float4 b[kThreadColumns];
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        b[j] = Four(columns.At(Column(j), k));
      }
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        const float4 a = Four(rows.At(Row(i), k));
#pragma unroll
        for (int j = 0; j < kThreadColumns; ++j) {
          float& sum = scores[i][j];
          sum = fmaf(a.x, b[j].x, sum);
          sum = fmaf(a.y, b[j].y, sum);
          sum = fmaf(a.z, b[j].z, sum);
          sum = fmaf(a.w, b[j].w, sum);
        }
      }
    }
  }

  static __device__ void AddProduct(const Scores& weights,
                                    const ColumnTile& columns, float* exchange,
                                    Sums& sums) {
    __syncwarp();  // the last product is done with the exchange
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) {
        exchange[Row(i) * kExchangePitch + Column(j)] = weights[i][j];
      }
    }
    __syncwarp();
#pragma unroll 2
    for (int k = 0; k < kColumns; k += 4) {
      float4 a[kThreadRows];
#pragma unroll
      for (int i = 0; i < kThreadRows; ++i) {
        a[i] = Four(exchange + Row(i) * kExchangePitch + k);
      }
#pragma unroll
      for (int j = 0; j < kThreadDims; j += 4) {
        const float4 b[4] = {
            Four(columns.At(k, Dim(j))), Four(columns.At(k + 1, Dim(j))),
            Four(columns.At(k + 2, Dim(j))), Four(columns.At(k + 3, Dim(j)))};
#pragma unroll
        for (int i = 0; i < kThreadRows; ++i) {
          AddFour(a[i].x, b[0], &sums[i][j]);
          AddFour(a[i].y, b[1], &sums[i][j]);
          AddFour(a[i].z, b[2], &sums[i][j]);
          AddFour(a[i].w, b[3], &sums[i][j]);
        }
      }
    }
  }

  static __device__ void AddFour(float a, const float4& b, float* sums) {
    sums[0] = fmaf(a, b.x, sums[0]);
    sums[1] = fmaf(a, b.y, sums[1]);
    sums[2] = fmaf(a, b.z, sums[2]);
    sums[3] = fmaf(a, b.w, sums[3]);
  }

  static __device__ void Put(const Sums& sums,
                             const float (&factor)[kThreadRows],
                             const RowTile& to) {
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadDims; ++j) {
        *to.At(Row(i), Dim(j)) = sums[i][j] * factor[i];
      }
    }
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_FMA_H_
