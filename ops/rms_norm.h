// Root mean square normalisation over the last dim (Zhang and Sennrich,
// 1910.07467), fused with the residual connection in front of it:
//
//   s = residual + dropout(x)      (or s = x without a residual)
//   y = s * rstd(s) * gamma,  rstd = 1 / sqrt(mean(s^2) + epsilon)
//
// Backward with respect to the input and to the weights are two ops, because a
// pipeline may run them at different times. Tensors are dense, and leading dims
// merge into rows; but without a residual all [rows, n] of a call may be slices
// of the dim before the last, [..., some heads, n] of tensors of one shape:
// norms of each head (Qwen 3). X is f32, bf16 or fp16, the same for all tensors
// of a call; rstd is f32, the weights' gradients f32 or X. In bf16 `sum` is
// rounded once, and what is normalised is the rounded one, which the backward
// sees too; y and dx are computed in f32 and rounded once.
#ifndef TROUPE_OPS_RMS_NORM_H_
#define TROUPE_OPS_RMS_NORM_H_

#include <cstdint>

#include "ops/dropout.h"
#include "ops/tensor.h"

namespace troupe {

class Device;

struct RmsNormArgs {
  Tensor x;             // X [rows, n]
  Tensor residual;      // optional, X [rows, n]
  Tensor sum;           // with a residual: receives s; may be x or residual
  DropoutMask dropout;  // of x; only with a residual
  Tensor gamma;         // X [n]
  float epsilon = 1e-5f;
  Tensor y;     // X [rows, n], written; may be x where that is not also sum
  Tensor rstd;  // optional, f32 [rows], written
};

void RmsNorm(Device& device, const RmsNormArgs& args);

// Where the rows of such a tensor begin: groups of them, each without gaps,
// from group to group `stride` elements. A dense tensor has groups of one row.
struct RowGroups {
  int64_t count = 0;
  int64_t rows = 1;  // of each
  int64_t stride = 0;
  bool dense = true;
};
RowGroups RowGroupsOf(const Tensor& tensor);

// dx = gradient through the norm (+ residual_gradient): the gradient of s. The
// gradient of `residual` is dx itself, that of `x` is dropout of dx.
struct RmsNormBackwardInputArgs {
  Tensor dy;                 // X [rows, n]
  Tensor s;                  // X [rows, n]: what was normalised
  Tensor gamma;              // X [n]
  Tensor rstd;               // f32 [rows]
  Tensor residual_gradient;  // optional, X [rows, n]
  Tensor dx;  // X [rows, n], written; may be dy or residual_gradient
};

void RmsNormBackwardInput(Device& device, const RmsNormBackwardInputArgs& args);

struct RmsNormBackwardWeightArgs {
  Tensor dy;      // X [rows, n]
  Tensor s;       // X [rows, n]
  Tensor rstd;    // f32 [rows]
  Tensor dgamma;  // f32 or X [n], accumulated
};

void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_RMS_NORM_H_
