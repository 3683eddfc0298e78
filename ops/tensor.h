// A Tensor is a view of numbers that lie on some device: a pointer, a dtype, a
// shape and strides. It owns nothing; the owner of the memory (an arena, a
// slot, a flat parameter buffer) keeps it alive for as long as views of it are
// in use. Copying a Tensor copies the view, as with absl::Span.
//
//   Tensor qkv(slot, DType::kF32, {batch, time, 3 * width});
//   Tensor q = qkv.Slice(2, 0, width);         // strided, no copy
//   Tensor flat = gradients.Slice(0, begin, end);
//
// Tensors are row-major and the last dim is always dense (stride 1). An op that
// takes "rows" merges all leading dims: [2, 5, 8] is 10 rows of 8 columns. An
// empty Tensor (defined() is false) stands for an optional argument left out.
//
// Wrong shapes and dtypes are our bugs, so every accessor CHECKs.
#ifndef TROUPE_OPS_TENSOR_H_
#define TROUPE_OPS_TENSOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "ops/dtype.h"
#include "ops/fp16.h"
#include "proto/base/check.h"

namespace troupe {

// bf16 is stored as its 16 bits.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<uint16_t> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<Fp16> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};

class Tensor {
 public:
  static constexpr int kRankMax = 5;

  Tensor() = default;
  // A dense row-major view of `data`, which may be null only when some dim is
  // 0.
  Tensor(void* data, DType dtype, std::initializer_list<int64_t> dims);

  bool defined() const { return rank_ > 0; }
  DType dtype() const { return dtype_; }
  int rank() const { return rank_; }
  // Negative counts from the last: dim(-1) is the number of columns.
  int64_t dim(int index) const;
  int64_t stride(int index) const;  // in elements
  int64_t elements() const;
  size_t bytes() const { return elements() * DTypeBytes(dtype_); }
  bool dense() const;  // no gaps: one range of elements() elements

  // The product of all dims but the last; the last; the distance in elements
  // between two rows. RowStride CHECKs that the leading dims merge into one.
  int64_t rows() const;
  int64_t columns() const { return dim(-1); }
  int64_t RowStride() const;

  void* raw() const { return data_; }
  template <typename T>
  T* data() const {
    CHECK(dtype_ == DTypeOf<T>::kValue)
        << "tensor holds " << DTypeName(dtype_) << ", not "
        << DTypeName(DTypeOf<T>::kValue);
    return static_cast<T*>(data_);
  }

  // The part [begin, end) of one dim.
  Tensor Slice(int dim, int64_t begin, int64_t end) const;
  // The same elements under another shape; this tensor must be dense.
  Tensor View(std::initializer_list<int64_t> dims) const;
  // Element 0 of the first dim, without that dim; the rank is at least 2.
  Tensor Front() const;
  Tensor Flat() const { return View({elements()}); }
  // The same view of other memory.
  Tensor At(void* data) const;

  bool SameShape(const Tensor& other) const;
  std::string ShapeString() const;  // "f32[2, 3]"

 private:
  int Index(int index) const;

  void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, kRankMax> dims_{};
  std::array<int64_t, kRankMax> strides_{};
};

}  // namespace troupe

#endif  // TROUPE_OPS_TENSOR_H_
