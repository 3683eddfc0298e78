// The instructions of one warp that CUDA C++ has no names for, as PTX: products
// on tensor cores and what feeds them. All are there from sm_80 on.
//
// Each of the 32 lanes holds a fragment of a matrix (PTX ISA, "Matrix Fragments
// for mma.m16n8k16"). With g = lane / 4 and t = lane % 4, and two numbers of
// bf16 or fp16 to a word, the lower column or row in its lower half:
//
//   a [16, 16]  a[0]: row g, columns 2t and 2t + 1;  a[1]: row g + 8;
//               a[2], a[3]: the same rows, columns + 8
//   b [16, 8]   b[0]: column g, rows 2t and 2t + 1;  b[1]: rows + 8
//   c [16, 8]   upper[0], [1]: row g, columns 2t and 2t + 1;  lower: row g + 8
//
// The sums c, packed two to a word, are therefore the fragment a of the next
// product: this is what attention lives on.
#ifndef TROUPE_OPS_CUDA_MMA_H_
#define TROUPE_OPS_CUDA_MMA_H_

#include <cuda_runtime.h>

#include <cstdint>

#include "ops/fp16.h"

namespace troupe::cuda {

// What depends on whether the two bytes of an element are bf16 (uint16_t) or
// fp16.
//
//   MultiplyAdd   c += a b, in f32
//   Pack          two numbers rounded to nearest and even, in one word; in fp16
//                 from 65520 on to infinity
template <typename Element>
struct TensorCore;

template <>
struct TensorCore<uint16_t> {
  static __device__ __forceinline__ void MultiplyAdd(float* upper, float* lower,
                                                     const uint32_t* a,
                                                     const uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  static __device__ __forceinline__ uint32_t Pack(float low, float high) {
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
};

template <>
struct TensorCore<Fp16> {
  static __device__ __forceinline__ void MultiplyAdd(float* upper, float* lower,
                                                     const uint32_t* a,
                                                     const uint32_t* b) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n"
        : "+f"(upper[0]), "+f"(upper[1]), "+f"(lower[0]), "+f"(lower[1])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  static __device__ __forceinline__ uint32_t Pack(float low, float high) {
    uint32_t packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
};

// Four 8 by 8 matrices of two-byte elements from shared memory: lane i names
// row i % 8 of matrix i / 8, 16 bytes aligned to 16. Of matrix m each lane
// receives row g, columns 2t and 2t + 1, in to[m].
__device__ __forceinline__ void LoadMatrices(uint32_t* to, const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(address)
      : "memory");
}

// The same of their transposes.
__device__ __forceinline__ void LoadMatricesTransposed(uint32_t* to,
                                                       const void* row) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(row));
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
      : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
      : "r"(address)
      : "memory");
}

// threadIdx.x % 32, read anew at each call: what is computed from it stays in
// no register from one turn of a loop to the next.
__device__ __forceinline__ int LaneAnew() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;\n" : "=r"(lane));
  return lane;
}

// 2^x, to 2^-22 of itself; zero below 2^-126.
__device__ __forceinline__ float Exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

// Copies kBytes (4 or 16, which both addresses are aligned to) from global to
// shared memory without passing through registers, or writes zeros where
// `present` is false. What a thread copied it sees after WaitForCopies; the
// others do after a barrier behind that.
template <int kBytes>
__device__ __forceinline__ void CopyAsync(void* to, const void* from,
                                          bool present) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  const int bytes = present ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address),
        "l"(__cvta_generic_to_global(from)), "r"(bytes)
        : "memory");
  } else {
    static_assert(kBytes == 4);
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 4, %2;\n" ::"r"(address),
        "l"(__cvta_generic_to_global(from)), "r"(bytes)
        : "memory");
  }
}

// Waits for all copies that this thread began.
__device__ __forceinline__ void WaitForCopies() {
  asm volatile("cp.async.wait_all;\n" ::: "memory");
}

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_MMA_H_
