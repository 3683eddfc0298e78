// The vocabulary projection and the loss: logits = x Wᵀ, then softmax
// cross-entropy with the targets. W is [vocab, width], often the token table of
// the embedding.
//
// The logits are the largest activation of a small model, so they exist once:
// in training the loss overwrites them with their gradient, which the backward
// then only multiplies.
#ifndef TROUPE_WORKER_MODEL_LM_HEAD_H_
#define TROUPE_WORKER_MODEL_LM_HEAD_H_

#include "ops/device.h"
#include "ops/tensor.h"
#include "worker/model/tensor_place.h"

namespace troupe {

class LmHead {
 public:
  // The weight's place in the flat buffer that the calls name.
  explicit LmHead(ParameterPlace weight);

  struct ProjectArgs {
    Tensor x;       // [..., width]
    Tensor logits;  // [..., vocab], written; rows may be strided
  };
  void Project(Device& device, void* parameters, const ProjectArgs& args) const;

  // All on the device.
  struct LossArgs {
    Tensor logits;           // read; overwritten where `gradient`
    const int32_t* targets;  // one a row; -1: not counted
    bool gradient = false;
    double gradient_scale = 1.0;
    double* loss_sum;  // added to
    double* count;     // of targets that count, added to
  };
  void Loss(Device& device, const LossArgs& args) const;

  struct BackwardInputArgs {
    Tensor d_logits;
    Tensor dx;  // written
  };
  void BackwardInput(Device& device, void* parameters,
                     const BackwardInputArgs& args) const;

  struct BackwardWeightArgs {
    Tensor x;
    Tensor d_logits;
    bool from_zero = false;
  };
  // Adds to the flat buffer of gradients; from_zero: which holds zeros.
  void BackwardWeight(Device& device, void* gradients,
                      const BackwardWeightArgs& args) const;

 private:
  ParameterPlace weight_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LM_HEAD_H_
