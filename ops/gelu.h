// GELU in its tanh form (Hendrycks and Gimpel, 1606.08415), which GPT-2 uses
// and Hugging Face calls gelu_new:
//
//   gelu(x) = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
//
// or, where `exact`, as x times the normal distribution's function, which
// GPT-NeoX uses and Hugging Face calls gelu:
//
//   gelu(x) = x/2 * (1 + erf(x / sqrt(2)))
//
// All tensors dense, of one shape and one dtype, f32, bf16 or fp16; computed in
// f32 and rounded once.
//
// In the tanh form rows may have a weight each, y = weight gelu(x), and offsets
// may say how many rows there are: as in ops/swiglu.h, and for the same
// experts.
#ifndef TROUPE_OPS_GELU_H_
#define TROUPE_OPS_GELU_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

struct GeluArgs {
  Tensor x;
  Tensor y;  // written; may be x
  bool exact = false;
  Tensor weights = {};  // optional, f32 [rows]; not exact
  // Optional, i32 [groups + 1]: there are offsets[groups] rows; not exact.
  Tensor offsets = {};
};

void Gelu(Device& device, const GeluArgs& args);

struct GeluBackwardArgs {
  Tensor x;   // the input of the forward
  Tensor dy;  // the gradient of its output
  Tensor dx;  // written; may be dy or x
  bool exact = false;
  Tensor weights = {};    // as in the forward
  Tensor d_weights = {};  // f32 [rows], written; with weights only
  Tensor offsets = {};    // as in the forward
};

void GeluBackward(Device& device, const GeluBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_GELU_H_
