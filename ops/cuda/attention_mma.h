// The two products of attention over tiles of bf16 or fp16 in shared memory, on
// tensor cores with sums in f32: scores = rows columns^T, and sums += weights
// columns, where the weights are scores that have been worked on in registers.
//
// Four warps lie along the rows, each with kRowTiles fragments of 16, so that
// what a warp loads of the columns serves 16 or 32 rows: from 32 on, shared
// memory keeps up with the tensor cores. Where the sums of a row are too many
// for the registers of one warp, kSplit warps share its dims, and each computes
// all scores.
#ifndef TROUPE_OPS_CUDA_ATTENTION_MMA_H_
#define TROUPE_OPS_CUDA_ATTENTION_MMA_H_

#include "ops/cuda/attention_tile.h"
#include "ops/cuda/mma.h"

namespace troupe::cuda {

template <typename Element_, int kDim_, int kRowTiles, int kColumns_,
          int kSplit = 1>
struct MmaProducts {
  using Element = Element_;  // uint16_t, which is bf16, or Fp16
  using Core = TensorCore<Element>;
  static constexpr int kDim = kDim_;
  static constexpr int kRows = 4 * 16 * kRowTiles;
  static constexpr int kColumns = kColumns_;
  static constexpr int kThreads = 128 * kSplit;
  using RowTile = Tile<Element, kRows, kDim>;
  using ColumnTile = Tile<Element, kColumns, kDim>;

  // What a thread holds of the scores [kRows, kColumns] and of the sums
  // [kRows, kDim]: its rows are Row(i), its columns Column(j) and Dim(j).
  static constexpr int kThreadRows = 2 * kRowTiles;
  static constexpr int kThreadColumns = kColumns / 4;
  static constexpr int kThreadDims = kDim / kSplit / 4;
  static constexpr int kLanesOfRow = 4;  // neighbours that share their rows
  static constexpr int kExchangeBytes = 0;
  using Scores = float[kThreadRows][kThreadColumns];
  using Sums = float[kThreadRows][kThreadDims];

  static __device__ int Lane() { return threadIdx.x % 32; }
  static __device__ int FirstRow() {
    return threadIdx.x / 32 % 4 * (16 * kRowTiles);
  }
  static __device__ int FirstDim() {
    return threadIdx.x / 128 * (kDim / kSplit);
  }
  static __device__ int Row(int i) { return FirstRow() + i * 8 + Lane() / 4; }
  static __device__ int Column(int j) {
    return j / 2 * 8 + Lane() % 4 * 2 + j % 2;
  }
  static __device__ int Dim(int j) { return FirstDim() + Column(j); }

  static __device__ void Multiply(const RowTile& rows,
                                  const ColumnTile& columns, Scores& scores) {
    const int lane = LaneAnew();
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadColumns; ++j) scores[i][j] = 0;
    }
#pragma unroll
    for (int k = 0; k < kDim; k += 16) {
      uint32_t a[kRowTiles][4];
#pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        LoadMatrices(
            a[t], rows.At(FirstRow() + 16 * t + lane % 16, k + lane / 16 * 8));
      }
#pragma unroll
      for (int n = 0; n < kColumns; n += 16) {
        uint32_t b[4];  // of columns n to n + 7, then of the next eight
        LoadMatrices(
            b, columns.At(n + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8));
#pragma unroll
        for (int t = 0; t < kRowTiles; ++t) {
          float* upper = &scores[2 * t][n / 4];
          float* lower = &scores[2 * t + 1][n / 4];
          Core::MultiplyAdd(upper, lower, a[t], b);
          Core::MultiplyAdd(upper + 2, lower + 2, a[t], b + 2);
        }
      }
    }
  }

  // The weights are rounded to Element. Leaves them as they are.
  static __device__ void AddProduct(const Scores& weights,
                                    const ColumnTile& columns,
                                    float* /*exchange*/, Sums& sums) {
    const int lane = LaneAnew();
#pragma unroll
    for (int k = 0; k < kColumns; k += 16) {
      uint32_t a[kRowTiles][4];
#pragma unroll
      for (int t = 0; t < kRowTiles; ++t) {
        const float* upper = &weights[2 * t][k / 4];
        const float* lower = &weights[2 * t + 1][k / 4];
        a[t][0] = Core::Pack(upper[0], upper[1]);
        a[t][1] = Core::Pack(lower[0], lower[1]);
        a[t][2] = Core::Pack(upper[2], upper[3]);
        a[t][3] = Core::Pack(lower[2], lower[3]);
      }
#pragma unroll
      for (int n = 0; n < kDim / kSplit; n += 16) {
        uint32_t b[4];
        LoadMatricesTransposed(
            b, columns.At(k + lane % 16, FirstDim() + n + lane / 16 * 8));
#pragma unroll
        for (int t = 0; t < kRowTiles; ++t) {
          float* upper = &sums[2 * t][n / 4];
          float* lower = &sums[2 * t + 1][n / 4];
          Core::MultiplyAdd(upper, lower, a[t], b);
          Core::MultiplyAdd(upper + 2, lower + 2, a[t], b + 2);
        }
      }
    }
  }

  // This thread's factor * sums, rounded once, into a tile.
  static __device__ void Put(const Sums& sums,
                             const float (&factor)[kThreadRows],
                             const RowTile& to) {
#pragma unroll
    for (int i = 0; i < kThreadRows; ++i) {
#pragma unroll
      for (int j = 0; j < kThreadDims; j += 2) {
        *reinterpret_cast<uint32_t*>(to.At(Row(i), Dim(j))) =
            Core::Pack(sums[i][j] * factor[i], sums[i][j + 1] * factor[i]);
      }
    }
  }
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_ATTENTION_MMA_H_
