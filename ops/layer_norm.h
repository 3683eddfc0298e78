// Layer normalisation over the last dim (Ba et al., 1607.06450), fused with the
// residual connection in front of it:
//
//   s = residual + dropout(x)      (or s = x without a residual)
//   y = (s - mean(s)) * rstd(s) * gamma + beta,  rstd = 1 / sqrt(var + epsilon)
//
// Backward with respect to the input and to the weights are two ops, because a
// pipeline may run them at different times. All tensors are dense; leading dims
// merge into rows. X is f32, bf16 or fp16, the same for all tensors of a call;
// mean, rstd are f32, the weights' gradients f32 or X. In bf16 `sum` is rounded
// once, and what is normalised is the rounded one, which the backward sees too;
// y and dx are computed in f32 and rounded once.
#ifndef TROUPE_OPS_LAYER_NORM_H_
#define TROUPE_OPS_LAYER_NORM_H_

#include "ops/dropout.h"
#include "ops/tensor.h"

namespace troupe {

class Device;

struct LayerNormArgs {
  Tensor x;             // X [rows, n]
  Tensor residual;      // optional, X [rows, n]
  Tensor sum;           // with a residual: receives s; may be x or residual
  DropoutMask dropout;  // of x; only with a residual
  Tensor gamma;         // X [n]
  Tensor beta;          // X [n]
  float epsilon = 1e-5f;
  Tensor y;     // X [rows, n], written; may be x where that is not also sum
  Tensor mean;  // f32 [rows], written; optional together with rstd
  Tensor rstd;  // f32 [rows], written
};

void LayerNorm(Device& device, const LayerNormArgs& args);

// dx = gradient through the norm (+ residual_gradient): the gradient of s. The
// gradient of `residual` is dx itself, that of `x` is dropout of dx.
struct LayerNormBackwardInputArgs {
  Tensor dy;                 // X [rows, n]
  Tensor s;                  // X [rows, n]: what was normalised
  Tensor gamma;              // X [n]
  Tensor mean;               // f32 [rows]
  Tensor rstd;               // f32 [rows]
  Tensor residual_gradient;  // optional, X [rows, n]
  Tensor dx;  // X [rows, n], written; may be dy or residual_gradient
};

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args);

struct LayerNormBackwardWeightArgs {
  Tensor dy;      // X [rows, n]
  Tensor s;       // X [rows, n]
  Tensor mean;    // f32 [rows]
  Tensor rstd;    // f32 [rows]
  Tensor dgamma;  // optional, f32 or X [n], accumulated
  Tensor dbeta;   // the same; one of them is there
};

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_LAYER_NORM_H_
