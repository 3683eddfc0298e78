// Products of bf16 matrices by oneDNN's matmul primitive, which adds up in f32
// and rounds once: with the instructions of AVX512_BF16 or AMX at twice to many
// times the rate of f32. Making a primitive costs as much as a small product,
// so those of the shapes last seen are kept: a training step has some dozens.
#ifndef TROUPE_OPS_CPU_BF16_PRODUCT_H_
#define TROUPE_OPS_CPU_BF16_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "ops/cpu/scratch.h"

namespace troupe {

// What a primitive is made for: c [m, n] (+)= op(a) op(b) (+ bias [n]). Strides
// are between rows of the matrices as they lie in memory.
struct Bf16ProductShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  bool bias = false;
  bool c_is_f32 = false;

  bool operator==(const Bf16ProductShape&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const Bf16ProductShape& s) {
    return H::combine(std::move(h), s.m, s.n, s.k, s.a_stride, s.b_stride,
                      s.c_stride, s.transpose_a, s.transpose_b, s.accumulate,
                      s.bias, s.c_is_f32);
  }
};

struct Bf16ProductMatrices {
  const uint16_t* a;
  const uint16_t* b;
  const uint16_t* bias;  // iff the shape has one
  void* c;               // bf16, or f32 where the shape says so
};

// Thread-safe: several threads may multiply at once.
class Bf16Products {
 public:
  // Keeps at most this many primitives.
  explicit Bf16Products(size_t kept_max);
  ~Bf16Products();

  // On as many threads as OpenMP gives the caller, which must be the same at
  // each call. REQUIRES an instruction set with bf16_products
  // (instruction_set.h): without one oneDNN may have no code for bf16, which
  // fails a CHECK.
  void Multiply(const Bf16ProductShape& shape,
                const Bf16ProductMatrices& matrices, ScratchPool& scratch);

  size_t kept() const;

 private:
  class Primitive;
  struct Kept {
    std::shared_ptr<const Primitive> primitive;
    uint64_t last_use = 0;
  };

  std::shared_ptr<const Primitive> Find(const Bf16ProductShape& shape);

  const size_t kept_max_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Bf16ProductShape, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe

#endif  // TROUPE_OPS_CPU_BF16_PRODUCT_H_
