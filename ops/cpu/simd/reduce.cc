#include "ops/cpu/simd/column_sums.h"
#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"
#include "ops/cpu/simd/vec_math.h"

namespace troupe {
namespace TROUPE_SIMD {
template <typename T>
void ColumnSum(const T* dy, int64_t rows, int64_t stride, float* db,
               int64_t n) {
  float* const sums[] = {db};
  SumColumns<1, 8>(rows, n, sums,
                   [=](Vec* to, int64_t row, int64_t column, auto l) {
                     to[0] += Load(dy + row * stride + column, l);
                   });
}

template <typename T>
double SumOfSquares(const T* x, int64_t n) {
  constexpr int64_t kBlock = 1024;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const T* from = x + begin;
    Vec sums[4] = {};
    int64_t i = 0;
    for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
      for (int v = 0; v < 4; ++v) {
        const Vec value = Load(from + i + v * kLanes);
        sums[v] += value * value;
      }
    }
    for (; i < count; i += kLanes) {
      const int rest =
          static_cast<int>(count - i < kLanes ? count - i : kLanes);
      const Vec value = Load(from + i, Part{rest});
      sums[0] += value * value;
    }
    total += Sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
  return total;
}

template <typename T>
void SoftmaxSum(const T* x, int64_t n, float* largest, double* sum) {
  constexpr int64_t kBlock = 1024;
  float top = -__builtin_inff();
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const T* from = x + begin;
    Vec block_top = Set(LoadOne(from));
    int64_t whole = 0;
    for (; whole + kLanes <= count; whole += kLanes) {
      block_top = Max(block_top, Load(from + whole));
    }
    float next = MaxLane(block_top);
    for (int64_t i = whole; i < count; ++i) {
      const float value = LoadOne(from + i);
      if (value > next) next = value;
    }
    if (next > top) {
      total *= __builtin_exp(static_cast<double>(top) - next);
      top = next;
    }
    Vec sums{};
    for (int64_t i = 0; i < whole; i += kLanes)
      sums += Exp(Load(from + i) - top);
    float block_sum = Sum(sums);
    if (whole < count) {
      const Part rest{static_cast<int>(count - whole)};
      const Vec e = Exp(Load(from + whole, rest) - top);
      for (int i = 0; i < rest.count; ++i) block_sum += e[i];
    }
    total += block_sum;
  }
  *largest = top;
  *sum = total;
}

template <typename T>
void ExpScaled(T* x, int64_t n, float shift, float scale) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(x + i, Exp(Load(x + i, l) - shift) * scale, l);
  });
}

template void ColumnSum(const float*, int64_t, int64_t, float*, int64_t);
template double SumOfSquares(const float*, int64_t);
template void SoftmaxSum(const float*, int64_t, float*, double*);
template void ExpScaled(float*, int64_t, float, float);
template void ColumnSum(const uint16_t*, int64_t, int64_t, float*, int64_t);
template double SumOfSquares(const uint16_t*, int64_t);
template void SoftmaxSum(const uint16_t*, int64_t, float*, double*);
template void ExpScaled(uint16_t*, int64_t, float, float);
template void ColumnSum(const Fp16*, int64_t, int64_t, float*, int64_t);
template double SumOfSquares(const Fp16*, int64_t);
template void SoftmaxSum(const Fp16*, int64_t, float*, double*);
template void ExpScaled(Fp16*, int64_t, float, float);

}  // namespace TROUPE_SIMD
}  // namespace troupe
