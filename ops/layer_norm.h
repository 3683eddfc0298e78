// Layer normalisation over the last dim (Ba et al., 1607.06450), fused with the
// residual connection in front of it:
//
//   s = residual + dropout(x)      (or s = x without a residual)
//   y = (s - mean(s)) * rstd(s) * gamma + beta,  rstd = 1 / sqrt(var + epsilon)
//
// Backward with respect to the input and to the weights are two ops, because a
// pipeline may run them at different times. All tensors are f32 and dense;
// leading dims merge into rows.
#ifndef TROUPE_OPS_LAYER_NORM_H_
#define TROUPE_OPS_LAYER_NORM_H_

#include "ops/device.h"
#include "ops/dropout.h"
#include "ops/tensor.h"

namespace troupe {

struct LayerNormArgs {
  Tensor x;             // [rows, n]
  Tensor residual;      // optional, [rows, n]
  Tensor sum;           // with a residual: receives s; may be x or residual
  DropoutMask dropout;  // of x; only with a residual
  Tensor gamma;         // [n]
  Tensor beta;          // [n]
  float epsilon = 1e-5f;
  Tensor y;     // [rows, n], written; may be x where that is not also sum
  Tensor mean;  // [rows], written; optional together with rstd
  Tensor rstd;  // [rows], written
};

void LayerNorm(Device& device, const LayerNormArgs& args);

// dx = gradient through the norm (+ residual_gradient): the gradient of s. The
// gradient of `residual` is dx itself, that of `x` is dropout of dx.
struct LayerNormBackwardInputArgs {
  Tensor dy;                 // [rows, n]
  Tensor s;                  // [rows, n]: what was normalised
  Tensor gamma;              // [n]
  Tensor mean;               // [rows]
  Tensor rstd;               // [rows]
  Tensor residual_gradient;  // optional, [rows, n]
  Tensor dx;  // [rows, n], written; may be dy or residual_gradient
};

void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args);

struct LayerNormBackwardWeightArgs {
  Tensor dy;      // [rows, n]
  Tensor s;       // [rows, n]
  Tensor mean;    // [rows]
  Tensor rstd;    // [rows]
  Tensor dgamma;  // [n], accumulated
  Tensor dbeta;   // [n], accumulated
};

void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_LAYER_NORM_H_
