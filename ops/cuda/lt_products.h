// Products of matrices by cuBLASLt, on tensor cores for bf16 and fp16 and on
// plain ones for f32, with what follows a product fused where it has a kernel
// for that. Asking which of its hundreds of kernels suits a shape best costs as
// much as a small product, so the answers for the shapes last seen are kept: a
// training step has some dozens.
//
// The answer is a guess, in order of likelihood. Where there is somewhere to
// keep what comes out, a thread that was prepared times the first guesses on
// the operands of the first product of a shape, which so is computed some times
// over. What accumulates cannot be: it takes what was chosen for the same shape
// when it did not, as a rule in the step's first micro-batch. Either way the
// choice is kept, so that the next process computes the same bits.
#ifndef TROUPE_OPS_CUDA_LT_PRODUCTS_H_
#define TROUPE_OPS_CUDA_LT_PRODUCTS_H_

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "ops/cuda/first_launches.h"
#include "ops/cuda/thread_stream.h"
#include "ops/kept_choices.h"
#include "ops/tensor.h"

namespace troupe::cuda {

// Which dim of a product is another in each call, as the rows of an expert are.
enum class LtVarying { kNone, kM, kK };

// What a kernel is chosen for: c [m, n] (+)= op(a) op(b), row-major. Strides
// are between rows of the matrices as they lie in memory.
struct LtProductShape {
  int64_t m = 0, n = 0, k = 0;
  int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  int64_t residual_stride = 0;  // where there is one
  bool transpose_a = false, transpose_b = false;
  DType type = DType::kF32;  // of a and b, and the bias: f32, bf16 or fp16
  bool c_is_f32 = false;     // and not of a's type
  bool accumulate = false;
  bool bias = false;  // only where c is of a's type
  // Of c's type, added; with neither accumulate nor gelu.
  bool residual = false;
  // c = gelu(product + bias), and before_gelu, dense and of c's type, the rest.
  bool gelu = false;
  // c = product times GELU's slope at gelu_input, dense and of c's type; with
  // neither of the others.
  bool gelu_slope = false;
  // Then the kernel is the one for this dim rounded up, 8 sizes from one power
  // of two to the next; nothing is timed. With none of bias, residual and gelu.
  LtVarying varying = LtVarying::kNone;
  uint32_t alignment = 0;  // bytes to which all matrices are aligned; see below

  bool operator==(const LtProductShape&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LtProductShape& s) {
    return H::combine(std::move(h), s.m, s.n, s.k, s.a_stride, s.b_stride,
                      s.c_stride, s.residual_stride, s.transpose_a,
                      s.transpose_b, s.type, s.c_is_f32, s.accumulate, s.bias,
                      s.residual, s.gelu, s.gelu_slope, s.varying, s.alignment);
  }
};

struct LtProductMatrices {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* bias = nullptr;        // iff the shape has one
  const void* residual = nullptr;    // iff it has a residual
  void* before_gelu = nullptr;       // iff the shape has a gelu
  const void* gelu_input = nullptr;  // iff it has a gelu_slope
  void* c = nullptr;

  // What they are all aligned to: a power of two, at most 16, since no kernel
  // asks for more.
  uint32_t Alignment() const;
};

// Where choices are kept, borrowed, and of which GPU these are. Null: nowhere.
struct LtChoices {
  KeptChoices* kept = nullptr;
  std::string gpu;
};

// Thread-safe: several threads may multiply at once, each on its own stream.
class LtProducts {
 public:
  // Keeps at most this many answers. The first product of each shape, whose
  // kernel cuBLASLt may have to load, runs alone. Borrows the launches.
  LtProducts(size_t kept_max, FirstLaunches& launches, LtChoices choices = {});

  // Enqueues the product. False, and nothing done, where cuBLASLt has no kernel
  // for this; each product without gelu and gelu_slope has one.
  absl::StatusOr<bool> Multiply(const LtProductShape& shape,
                                const LtProductMatrices& matrices,
                                const Blas& blas, cudaStream_t stream);

  size_t kept() const;

 private:
  struct Kept {
    bool supported = false;
    cublasLtMatmulAlgo_t algorithm{};
    uint64_t last_use = 0;
  };
  class Call;

  // Of a shape with a varying dim.
  absl::StatusOr<bool> MultiplyVarying(const LtProductShape& shape,
                                       const LtProductMatrices& matrices,
                                       const Blas& blas, cudaStream_t stream);

  // How to multiply matrices of this shape; may time it, where it is alone.
  absl::StatusOr<Kept> Choose(Call& call, const LtProductShape& shape,
                              const LtProductMatrices& matrices,
                              const Blas& blas, cudaStream_t stream,
                              bool alone);

  // Of a shape, without `accumulate`, by which cuBLASLt does not choose; and
  // whether the thread was prepared, as others' products are not timed.
  using Key = std::pair<LtProductShape, bool>;
  // What is kept, if anything.
  absl::optional<Kept> Find(const Key& key);
  void Keep(const Key& key, Kept chosen);

  const size_t kept_max_;
  FirstLaunches& launches_;
  const LtChoices choices_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<Key, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_LT_PRODUCTS_H_
