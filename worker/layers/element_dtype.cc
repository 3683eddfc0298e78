#include "worker/layers/element_dtype.h"

#include "proto/base/check.h"

namespace troupe {

DType DTypeOfElement(ElementType type) {
  switch (type) {
    case F32:
      return DType::kF32;
    case BF16:
      return DType::kBF16;
    case F16:
      return DType::kF16;
    case F64:
      return DType::kF64;
    case I32:
      return DType::kI32;
    default:
      CHECK(false) << ElementType_Name(type);
      return DType::kF32;
  }
}

}  // namespace troupe
