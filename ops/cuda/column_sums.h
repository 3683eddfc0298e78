// Sums over the rows of a matrix, column by column: the gradients of biases and
// of norms' weights. The rows are cut into parts, at most kGpuSumPartsMax of
// them by the shape alone; each part is summed by one block for some columns,
// and the sums of the parts are then added up in order. Nothing is added
// atomically, so the same inputs give the same bits.
#ifndef TROUPE_OPS_CUDA_COLUMN_SUMS_H_
#define TROUPE_OPS_CUDA_COLUMN_SUMS_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "ops/cuda/block.h"
#include "ops/cuda/elements.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/scratch.h"
#include "proto/base/gpu_limits.h"

namespace troupe::cuda {

// A block: this many threads side by side, each with n columns, and this many
// one below the other, each with every kBelow-th row.
constexpr int kBeside = kWarp;
constexpr int kBelow = 8;

// term(row, column, count, values) sets values[o][i] to what row `row` has in
// column `column` + i for output o, i < count.
template <int outputs, int n, typename Term>
__global__ void PartSumsKernel(Term term, int64_t rows, int64_t columns,
                               int64_t part_rows, float* part_sums) {
  __shared__ float sums[kBelow][outputs][kBeside * n];
  const int64_t column = (int64_t{blockIdx.x} * kBeside + threadIdx.x) * n;
  const int64_t begin = blockIdx.y * part_rows;
  const int64_t end = begin + part_rows < rows ? begin + part_rows : rows;
  float total[outputs][n] = {};
  if (column < columns) {
    for (int64_t row = begin + threadIdx.y; row < end; row += kBelow) {
      float values[outputs][n];
      term(row, column, columns - column, values);
#pragma unroll
      for (int o = 0; o < outputs; ++o) {
#pragma unroll
        for (int i = 0; i < n; ++i) total[o][i] += values[o][i];
      }
    }
  }
#pragma unroll
  for (int o = 0; o < outputs; ++o) {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      // Neighbouring threads to neighbouring words, so that no bank waits.
      sums[threadIdx.y][o][i * kBeside + threadIdx.x] = total[o][i];
    }
  }
  __syncthreads();
  for (int at = threadIdx.y * kBeside + threadIdx.x; at < outputs * kBeside * n;
       at += kBeside * kBelow) {
    const int o = at / (kBeside * n), i = at % (kBeside * n);
    const int64_t to =
        (int64_t{blockIdx.x} * kBeside + i % kBeside) * n + i / kBeside;
    if (to >= columns) continue;
    float sum = 0;
#pragma unroll
    for (int y = 0; y < kBelow; ++y) sum += sums[y][o][i];
    part_sums[(blockIdx.y * outputs + o) * columns + to] = sum;
  }
}

template <typename G, int outputs>
__global__ void AddPartSumsKernel(const float* part_sums, int64_t parts,
                                  int64_t columns, std::array<G*, outputs> to) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= columns) return;
#pragma unroll
  for (int o = 0; o < outputs; ++o) {
    if (to[o] == nullptr) continue;
    float sum = 0;
#pragma unroll 16  // loads that are under way at once; added in order
    for (int64_t part = 0; part < parts; ++part) {
      sum += part_sums[(part * outputs + o) * columns + column];
    }
    to[o][column] = Rounded<G>(FromElement(to[o][column]) + sum);
  }
}

// to[o][0, columns) += the sums over all rows of output o of `term`, which
// gives n columns at once. They are taken in f32 and rounded once, to G. Those
// whose to[o] is null are lost.
template <int n, int outputs, typename G, typename Term>
void SumColumns(CudaDevice& cuda, int64_t rows, int64_t columns,
                const Term& term, const std::array<G*, outputs>& to) {
  constexpr int64_t kPartRowsMin = 64, kPartsMax = kGpuSumPartsMax;
  if (rows == 0 || columns == 0) return;
  const int64_t part_rows =
      std::max(kPartRowsMin, (rows + kPartsMax - 1) / kPartsMax);
  const int64_t parts = (rows + part_rows - 1) / part_rows;
  const int64_t tiles = (columns + kBeside * n - 1) / (kBeside * n);
  const Scratch part_sums(cuda, parts * outputs * columns * sizeof(float));
  Launch(
      cuda, PartSumsKernel<outputs, n, Term>,
      {.grid = dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts)),
       .block = dim3(kBeside, kBelow)},
      term, rows, columns, part_rows, part_sums.as<float>());
  Launch(cuda, AddPartSumsKernel<G, outputs>, FlatShape(columns, 1),
         part_sums.as<float>(), parts, columns, to);
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_COLUMN_SUMS_H_
