#include "ops/cpu/simd/loops.h"
#include "ops/cpu/simd/vec.h"

namespace troupe {
namespace TROUPE_SIMD {

template <typename T>
void Rotate(T* x, const float* cosines, const float* sines, int64_t half,
            int64_t heads, int64_t width) {
  for (int64_t head = 0; head < heads; ++head) {
    T* first = x + head * width;
    T* second = first + half;
    ForEachVec(half, [=](int64_t i, auto l) {
      const Vec a = Load(first + i, l);
      const Vec b = Load(second + i, l);
      const Vec c = Load(cosines + i, l);
      const Vec s = Load(sines + i, l);
      Store(first + i, a * c - b * s, l);
      Store(second + i, b * c + a * s, l);
    });
  }
}

template void Rotate(float*, const float*, const float*, int64_t, int64_t,
                     int64_t);
template void Rotate(uint16_t*, const float*, const float*, int64_t, int64_t,
                     int64_t);
template void Rotate(Fp16*, const float*, const float*, int64_t, int64_t,
                     int64_t);

}  // namespace TROUPE_SIMD
}  // namespace troupe
