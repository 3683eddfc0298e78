// Tensors that hold statistics of rows, such as a row's maximum and its sum of
// exponentials, and not values of the model.
#ifndef TROUPE_PROTO_PLAN_STATISTICS_H_
#define TROUPE_PROTO_PLAN_STATISTICS_H_

#include "proto/unit.pb.h"

namespace troupe {

// Whether the last dimension is one of statistics. REQUIRES: a tensor has a
// dimension.
inline bool HoldsStatistics(const TensorSpec& tensor) {
  return tensor.dims(tensor.dims_size() - 1).sections(0).kind() ==
         Dim::STATISTICS;
}

// Whether the loss is differentiated by it: neither tokens nor statistics are.
inline bool IsDifferentiated(const TensorSpec& tensor) {
  return tensor.dtype() != I32 && !HoldsStatistics(tensor);
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_STATISTICS_H_
