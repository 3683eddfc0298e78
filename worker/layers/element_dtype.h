// A plan's type of elements, as ops call it.
#ifndef TROUPE_WORKER_LAYERS_ELEMENT_DTYPE_H_
#define TROUPE_WORKER_LAYERS_ELEMENT_DTYPE_H_

#include "ops/tensor.h"
#include "proto/cluster.pb.h"

namespace troupe {

// REQUIRES F32, BF16, F16 or I32.
DType DTypeOfElement(ElementType type);

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_ELEMENT_DTYPE_H_
