#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/philox_vec.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

template <typename T>
void Dropout(const T* x, const T* residual, T* y, int64_t n,
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
    const T* from = x + begin;
    const T* add = residual ? residual + begin : nullptr;
    T* to = y + begin;
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

template <typename From, typename To>
void Add(const From* x, To* y, int64_t n, float alpha) {
  ForEachVec(n, [=](int64_t i, auto l) {
    Store(y + i, Load(y + i, l) + alpha * Load(x + i, l), l);
  });
}

template <typename T>
void Scale(T* x, int64_t n, float alpha) {
  ForEachVec(
      n, [=](int64_t i, auto l) { Store(x + i, alpha * Load(x + i, l), l); });
}

template <typename T>
void Fill(T* x, int64_t n, float value) {
  const Vec v = Set(value);
  ForEachVec(n, [=](int64_t i, auto l) { Store(x + i, v, l); });
}

template <typename From, typename To>
void Cast(const From* x, To* y, int64_t n) {
  ForEachVec(n, [=](int64_t i, auto l) { Store(y + i, Load(x + i, l), l); });
}

template void Dropout(const float*, const float*, float*, int64_t,
                      const RawDropout&);
template void Fill(float*, int64_t, float);
template void Scale(float*, int64_t, float);
template void Add(const float*, float*, int64_t, float);
template void Cast(const float*, float*, int64_t);
template void Dropout(const uint16_t*, const uint16_t*, uint16_t*, int64_t,
                      const RawDropout&);
template void Fill(uint16_t*, int64_t, float);
template void Scale(uint16_t*, int64_t, float);
template void Add(const uint16_t*, uint16_t*, int64_t, float);
template void Cast(const float*, uint16_t*, int64_t);
template void Add(const uint16_t*, float*, int64_t, float);
template void Add(const float*, uint16_t*, int64_t, float);
template void Cast(const uint16_t*, float*, int64_t);
template void Dropout(const Fp16*, const Fp16*, Fp16*, int64_t,
                      const RawDropout&);
template void Fill(Fp16*, int64_t, float);
template void Scale(Fp16*, int64_t, float);
template void Add(const Fp16*, Fp16*, int64_t, float);
template void Cast(const float*, Fp16*, int64_t);
template void Add(const Fp16*, float*, int64_t, float);
template void Add(const float*, Fp16*, int64_t, float);
template void Cast(const Fp16*, float*, int64_t);

}  // namespace TROUPE_SIMD
}  // namespace troupe
