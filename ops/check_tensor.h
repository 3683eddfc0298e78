// What the functions of ops/<name>.cc say about their arguments. A failed check
// names the tensor and both shapes.
#ifndef TROUPE_OPS_CHECK_TENSOR_H_
#define TROUPE_OPS_CHECK_TENSOR_H_

#include "ops/tensor.h"

// The tensor is there and of this dtype.
#define CHECK_DTYPE(tensor, expected)                           \
  CHECK((tensor).defined() && (tensor).dtype() == (expected))   \
      << #tensor " is " << (tensor).ShapeString() << ", wants " \
      << ::troupe::DTypeName(expected)

// The tensor is there, f32 and without gaps.
#define CHECK_DENSE_F32(tensor)                                            \
  CHECK((tensor).defined() && (tensor).dtype() == ::troupe::DType::kF32 && \
        (tensor).dense())                                                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants dense f32"

// As above, with this many elements.
#define CHECK_F32_ELEMENTS(tensor, count)                                    \
  CHECK((tensor).defined() && (tensor).dtype() == ::troupe::DType::kF32 &&   \
        (tensor).dense() && (tensor).elements() == (count))                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants dense f32 of " \
      << (count) << " elements"

// As above, and of the same shape as another.
#define CHECK_LIKE(tensor, other)                                       \
  CHECK((tensor).defined() && (tensor).dtype() == (other).dtype() &&    \
        (tensor).dense() && (tensor).SameShape(other))                  \
      << #tensor " is " << (tensor).ShapeString() << ", wants a dense " \
      << (other).ShapeString() << " like " #other

#endif  // TROUPE_OPS_CHECK_TENSOR_H_
