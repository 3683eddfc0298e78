// Softmax cross-entropy and its gradient in one pass over the logits, which are
// by far the largest activation of a small model and are therefore overwritten:
//
//   loss_sum += sum over rows of (logsumexp(logits) - logits[target])
//   logits    = (softmax(logits) - onehot(target)) * gradient_scale
//
// Rows whose target is -1 add nothing and get a gradient of zero. The mean over
// a global batch of N targets is loss_sum / N with gradient_scale 1 / N.
//
// Logits are f32 or bf16. Either way the exponentials are f32, and each element
// of the gradient is rounded once: that of a target is the difference, not the
// difference of a rounded probability.
#ifndef TROUPE_OPS_CROSS_ENTROPY_H_
#define TROUPE_OPS_CROSS_ENTROPY_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

struct CrossEntropyArgs {
  Tensor logits;          // f32 or bf16 [rows, vocabulary], rows may be strided
  Tensor targets;         // i32 [rows] in any shape, each in [-1, vocabulary)
  Tensor loss_sum;        // f64 [1], accumulated
  Tensor count;           // optional, f64 [1], accumulated: targets but -1
  Tensor losses;          // optional, f32 [rows]: the loss of each row
  bool gradient = false;  // overwrite the logits; otherwise they stay
  float gradient_scale = 1.0f;
};

void CrossEntropy(Device& device, const CrossEntropyArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_CROSS_ENTROPY_H_
