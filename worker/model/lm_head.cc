#include "worker/model/lm_head.h"

#include <utility>

#include "ops/cross_entropy.h"
#include "ops/matmul.h"

namespace troupe {

LmHead::LmHead(ParameterPlace weight) : weight_(std::move(weight)) {}

void LmHead::Project(Device& device, void* parameters,
                     const ProjectArgs& args) const {
  MatMul(device, {.a = args.x,
                  .b = weight_.values.In(parameters),
                  .c = args.logits,
                  .transpose_b = true});
}

void LmHead::Loss(Device& device, const LossArgs& args) const {
  CrossEntropy(device,
               {.logits = args.logits,
                .targets = Tensor(const_cast<int32_t*>(args.targets),
                                  DType::kI32, {args.logits.rows()}),
                .loss_sum = Tensor(args.loss_sum, DType::kF64, {1}),
                .count = Tensor(args.count, DType::kF64, {1}),
                .gradient = args.gradient,
                .gradient_scale = static_cast<float>(args.gradient_scale)});
}

void LmHead::BackwardInput(Device& device, void* parameters,
                           const BackwardInputArgs& args) const {
  MatMul(
      device,
      {.a = args.d_logits, .b = weight_.values.In(parameters), .c = args.dx});
}

void LmHead::BackwardWeight(Device& device, void* gradients,
                            const BackwardWeightArgs& args) const {
  MatMul(device, {.a = args.d_logits,
                  .b = args.x,
                  .c = weight_.gradient.In(gradients),
                  .transpose_a = true,
                  .accumulate = !args.from_zero});
}

}  // namespace troupe
