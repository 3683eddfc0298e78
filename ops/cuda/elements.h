// How kernels read and write the elements of tensors: some at once, as f32.
//
// `n` elements are one or two accesses of up to 16 bytes, the widest that a
// thread has. Where rows start elsewhere than at such a boundary, or end
// within one, elements are read one by one: what is computed is the same.
//
//   float values[8];
//   Load(x + begin, count, aligned, values);  // count < 8 at a row's end
//   for (float& v : values) v *= 2;
//   Store(y + begin, count, aligned, values);
#ifndef TROUPE_OPS_CUDA_ELEMENTS_H_
#define TROUPE_OPS_CUDA_ELEMENTS_H_

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ops/activation_type.h"

namespace troupe {

// As many elements as 16 bytes hold: 4 of f32, 8 of bf16 or fp16.
template <typename T>
constexpr int kPack = 16 / sizeof(T);

// Whether n elements at these addresses, and at any multiple of n from them,
// may be accessed at once. Null is as good as any.
template <int n, typename... T>
bool Aligned(const T*... at) {
  constexpr auto kBytes = [](size_t bytes) { return bytes < 16 ? bytes : 16; };
  return ((reinterpret_cast<uintptr_t>(at) % kBytes(n * sizeof(T)) == 0) &&
          ...);
}

// The same of rows that lie `stride` elements apart.
template <int n, typename... T>
bool AlignedRows(int64_t stride, const T*... at) {
  return stride % n == 0 && Aligned<n>(at...);
}

// To nearest, ties to even, by the GPU's own instruction: as ToBF16 and ToFP16,
// but for NaN, of which it keeps neither sign nor payload.
template <typename T>
__device__ inline T Rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, Fp16>) {
    return {__half_as_ushort(__float2half_rn(value))};
  } else {
    return __bfloat16_as_ushort(__float2bfloat16_rn(value));
  }
}

// As FromElement, but for fp16 by the GPU's own instruction, which may change a
// NaN's payload.
template <typename T>
__device__ inline float Widened(T x) {
  if constexpr (std::is_same_v<T, Fp16>) {
    return __half2float(__ushort_as_half(x.bits));
  } else {
    return FromElement(x);
  }
}

template <typename T, int n>
struct alignas(n * sizeof(T) < 16 ? n * sizeof(T) : 16) Elements {
  T at[n];
};

// Writes words to a multiple of their bytes. nvcc would take the store of a
// struct of elements apart, into one for each.
__device__ inline void StoreWord(void* to, uint4 word) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to),
               "r"(word.x), "r"(word.y), "r"(word.z), "r"(word.w)
               : "memory");
}
__device__ inline void StoreWord(void* to, uint2 word) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(word.x),
               "r"(word.y)
               : "memory");
}

template <int n, typename T>
__device__ inline void StoreWhole(T* to, const Elements<T, n>& whole) {
  constexpr int kBytes = n * sizeof(T);
  using Word = std::conditional_t<kBytes % 16 == 0, uint4, uint2>;
  static_assert(kBytes % sizeof(Word) == 0);
  Word words[kBytes / sizeof(Word)];
  memcpy(words, &whole, kBytes);
#pragma unroll
  for (size_t i = 0; i < kBytes / sizeof(Word); ++i) {
    StoreWord(reinterpret_cast<Word*>(to) + i, words[i]);
  }
}

// Where the elements of this thread begin that has `per_thread` of them, one
// thread after the other.
__device__ inline int64_t FlatBegin(int per_thread) {
  return (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * per_thread;
}

// The elements past `count` are zero.
template <int n, typename T>
__device__ inline void Load(const T* from, int64_t count, bool aligned,
                            float (&to)[n]) {
  if (aligned && count >= n) {
    const auto whole = *reinterpret_cast<const Elements<T, n>*>(from);
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = Widened(whole.at[i]);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) to[i] = i < count ? Widened(from[i]) : 0;
  }
}

// The elements past `count` are left alone.
template <int n, typename T>
__device__ inline void Store(T* to, int64_t count, bool aligned,
                             const float (&from)[n]) {
  if (aligned && count >= n) {
    Elements<T, n> whole;
#pragma unroll
    for (int i = 0; i < n; ++i) whole.at[i] = Rounded<T>(from[i]);
    StoreWhole(to, whole);
  } else {
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (i < count) to[i] = Rounded<T>(from[i]);
    }
  }
}

}  // namespace troupe

#endif  // TROUPE_OPS_CUDA_ELEMENTS_H_
