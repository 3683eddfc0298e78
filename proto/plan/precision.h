// The precision of a job, as what it does to memory and to updates. In bf16 and
// fp16 the model computes with such parameters and activations, and the
// optimizer keeps f32 master weights beside them; moments, statistics and
// reductions are f32 in any, and so are gradients of parameters unless
// training.gradient_precision asks for the parameters' type (Micikevicius et
// al., 1710.03740). fp16 has so little range that its loss is scaled
// (worker/rank/loss_scale.h).
#ifndef TROUPE_PROTO_PLAN_PRECISION_H_
#define TROUPE_PROTO_PLAN_PRECISION_H_

#include <cstdint>
#include <string>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// REQUIRES "f32", "bf16" or "fp16".
inline ElementType PrecisionOf(const std::string& name) {
  return name == "bf16" ? BF16 : name == "fp16" ? F16 : F32;
}

// Of parameters and activations. REQUIRES a resolved `training`, as all below.
inline ElementType ComputeType(const TrainingSpec& training) {
  return PrecisionOf(training.precision());
}

// In which gradients of parameters are kept and summed.
inline ElementType GradientType(const TrainingSpec& training) {
  return training.gradient_precision() == "parameters" ? ComputeType(training)
                                                       : F32;
}

// Whether the optimizer's weights are others than those that compute.
inline bool HasMasterWeights(const TrainingSpec& training) {
  return ComputeType(training) != F32;
}

// Whether the loss is multiplied by a scale, which gradients are divided by.
inline bool ScalesLoss(const TrainingSpec& training) {
  return ComputeType(training) == F16;
}

// Whether updates wait for the norm of all gradients: by which they are
// clipped, or which says that one overflowed.
inline bool UpdatesNeedNorm(const TrainingSpec& training) {
  return training.gradient_clipping() > 0 || ScalesLoss(training);
}

// Whether parameters and activations may be of this type.
inline bool IsComputeType(ElementType type) {
  return type == F32 || type == BF16 || type == F16;
}

// REQUIRES a floating-point type.
inline int64_t BytesOfElement(ElementType type) {
  return type == BF16 || type == F16 ? 2 : type == F64 ? 8 : 4;
}

// As jobs call it. REQUIRES a type that computes.
inline const char* PrecisionName(ElementType type) {
  return type == BF16 ? "bf16" : type == F16 ? "fp16" : "f32";
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PRECISION_H_
