// What the functions of ops/<name>.cc say about their arguments. A failed check
// names the tensor and both shapes.
#ifndef TROUPE_OPS_CHECK_TENSOR_H_
#define TROUPE_OPS_CHECK_TENSOR_H_

#include "ops/tensor.h"

namespace troupe {
inline bool IsActivationType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16;
}
}  // namespace troupe

// The tensor is there and of this dtype.
#define CHECK_DTYPE(tensor, expected)                           \
  CHECK((tensor).defined() && (tensor).dtype() == (expected))   \
      << #tensor " is " << (tensor).ShapeString() << ", wants " \
      << ::troupe::DTypeName(expected)

// The tensor is there and holds activations or parameters.
#define CHECK_ACTIVATION(tensor)                                            \
  CHECK((tensor).defined() && ::troupe::IsActivationType((tensor).dtype())) \
      << #tensor " is " << (tensor).ShapeString()                           \
      << ", wants f32, bf16 or fp16"

// The tensor is there, without gaps, of `count` elements, and holds gradients
// of parameters, which are f32 or of this dtype, their parameters'.
#define CHECK_GRADIENT(tensor, parameters, count)                            \
  CHECK((tensor).defined() && (tensor).dense() &&                            \
        (tensor).elements() == (count) &&                                    \
        ((tensor).dtype() == ::troupe::DType::kF32 ||                        \
         (tensor).dtype() == (parameters)))                                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants dense f32 or " \
      << ::troupe::DTypeName(parameters) << " of " << (count) << " elements"

// As above, without gaps.
#define CHECK_DENSE_ACTIVATION(tensor)                                \
  CHECK_ACTIVATION(tensor);                                           \
  CHECK((tensor).dense()) << #tensor " is " << (tensor).ShapeString() \
                          << " with gaps"

// The tensor is there, f32 and without gaps.
#define CHECK_DENSE_F32(tensor)                                            \
  CHECK((tensor).defined() && (tensor).dtype() == ::troupe::DType::kF32 && \
        (tensor).dense())                                                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants dense f32"

// The tensor is there, of this dtype, without gaps and with this many elements.
#define CHECK_ELEMENTS(tensor, expected, count)                       \
  CHECK((tensor).defined() && (tensor).dtype() == (expected) &&       \
        (tensor).dense() && (tensor).elements() == (count))           \
      << #tensor " is " << (tensor).ShapeString() << ", wants dense " \
      << ::troupe::DTypeName(expected) << " of " << (count) << " elements"

#define CHECK_F32_ELEMENTS(tensor, count) \
  CHECK_ELEMENTS(tensor, ::troupe::DType::kF32, count)

// The tensor is there, of the same dtype and shape as another.
#define CHECK_STRIDED_LIKE(tensor, other)                            \
  CHECK((tensor).defined() && (tensor).dtype() == (other).dtype() && \
        (tensor).SameShape(other))                                   \
      << #tensor " is " << (tensor).ShapeString() << ", wants a "    \
      << (other).ShapeString() << " like " #other

// As above, without gaps.
#define CHECK_LIKE(tensor, other)                                       \
  CHECK((tensor).defined() && (tensor).dtype() == (other).dtype() &&    \
        (tensor).dense() && (tensor).SameShape(other))                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants a dense " \
      << (other).ShapeString() << " like " #other

#endif  // TROUPE_OPS_CHECK_TENSOR_H_
