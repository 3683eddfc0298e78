#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

void Dropout(const float* x, const float* residual, float* y, int64_t n,
             const RawDropout& dropout) {
  if (dropout.threshold == 0) {
    ForEachVec(n, [=](int64_t i, auto l) {
      const Vec v = Load(x + i, l);
      Store(y + i, residual ? v + Load(residual + i, l) : v, l);
    });
    return;
  }
  uint32_t room[kPhiloxRoom];
  for (int64_t begin = 0; begin < n; begin += kPhiloxRun) {
    const int count =
        static_cast<int>(n - begin < kPhiloxRun ? n - begin : kPhiloxRun);
    const uint32_t* bits =
        PhiloxRun(dropout.philox, dropout.first_element + begin, count, room);
    const float* from = x + begin;
    const float* add = residual ? residual + begin : nullptr;
    float* to = y + begin;
    const auto kept = [=](int64_t i) {
      return DropoutFactor(dropout, bits + i);
    };
    if (add) {
      ForEachVec(count, [=](int64_t i, auto l) {
        Store(to + i, Load(from + i, l) * kept(i) + Load(add + i, l), l);
      });
    } else {
      ForEachVec(count, [=](int64_t i, auto l) {
        Store(to + i, Load(from + i, l) * kept(i), l);
      });
    }
  }
}

void Add(const float* x, float* y, int64_t n, float alpha) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(y + i, Load(y + i, l) + alpha * Load(x + i, l), l);
  });
}

void Scale(float* x, int64_t n, float alpha) {
  ForEachVec(
      n, [=](int64_t i, auto l) { Store(x + i, alpha * Load(x + i, l), l); });
}

void Fill(float* x, int64_t n, float value) {
  const Vec v = Set(value);
  ForEachVec(n, [=](int64_t i, auto l) { Store(x + i, v, l); });
}

}  // namespace TROUPE_SIMD
}  // namespace troupe
