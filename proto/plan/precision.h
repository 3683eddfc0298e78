// The precision of a job, as what it does to memory. In bf16 the model computes
// with bf16 parameters and activations, and the optimizer keeps f32 master
// weights beside them; gradients of parameters, moments, statistics and
// reductions are f32 in either (Micikevicius et al., 1710.03740).
#ifndef TROUPE_PROTO_PLAN_PRECISION_H_
#define TROUPE_PROTO_PLAN_PRECISION_H_

#include <cstdint>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// Of parameters and activations. REQUIRES a resolved `training`.
inline ElementType ComputeType(const TrainingSpec& training) {
  return training.precision() == "bf16" ? BF16 : F32;
}

// Whether the optimizer's weights are others than those that compute.
inline bool HasMasterWeights(const TrainingSpec& training) {
  return ComputeType(training) != F32;
}

// Numbers that the optimizer keeps for each parameter, all f32.
inline int OptimizerMoments(const OptimizerSpec& optimizer) {
  if (optimizer.name() == "adamw") return 2;
  return optimizer.name() == "sgd" && optimizer.momentum() > 0 ? 1 : 0;
}

// REQUIRES a floating-point type.
inline int64_t BytesOfElement(ElementType type) {
  return type == BF16 ? 2 : type == F64 ? 8 : 4;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PRECISION_H_
