// C = op(A) op(B), where op transposes or not, with what often follows fused:
// C += for gradients, a bias row, GELU and its gradient, a residual. The three
// products of a linear layer y = x W + b, W being [in, out] as in GPT-2's
// Conv1D:
//
//   MatMul(device, {.a = x, .b = w, .c = y, .bias = b});
//   MatMul(device, {.a = dy, .b = w, .c = dx, .transpose_b = true});
//   MatMul(device, {.a = x, .b = dy, .c = dw, .transpose_a = true,
//                   .accumulate = true});
//
// a and b are both f32, both bf16 or both fp16. c is of their dtype, or f32
// inputs, for gradients that add up over micro-batches. Sums are in f32 and
// rounded once, after the bias; an activation is computed from pre_activation
// as stored, whether or not the caller keeps it, so that a backward that reads
// it back, or computes it anew, sees the same numbers. (A GPU that fuses both
// in bf16 computes it from the sum before that rounding; it too does the same
// with and without pre_activation.) With gelu_input too the product may be
// rounded to c's dtype before it is multiplied by the slope, and once more
// after, and with residual before that is added.
#ifndef TROUPE_OPS_MATMUL_H_
#define TROUPE_OPS_MATMUL_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

enum class Activation { kNone, kGelu };  // kGelu: the tanh form, ops/gelu.h

// All leading dims of a, b and c merge into rows; rows may be strided. With m
// rows and n columns of c: a is [m, k], or [k, m] where transpose_a; b is
// [k, n], or [n, k] where transpose_b; k is at least 1. c overlaps neither a
// nor b.
struct MatMulArgs {
  Tensor a;
  Tensor b;
  Tensor c;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // c += the product; not with bias or activation
  Tensor bias;              // optional, [n] of a's dtype: added to each row
  Activation activation = Activation::kNone;
  // Optional, [m, n] dense of c's dtype, only with an activation: receives
  // op(A) op(B) + bias, which the backward of the activation needs; c receives
  // the rest.
  Tensor pre_activation;
  // Optional, [m, n] of a's dtype: the backward of a GELU whose output was
  // multiplied. c, then dense and of a's dtype, is op(A) op(B) times GELU's
  // slope at gelu_input, element by element; not with accumulate, bias or
  // activation. Overlaps none of the others.
  Tensor gelu_input;
  // Optional, of c's dtype and shape, rows may be strided: added, so that c is
  // op(A) op(B) + bias + residual; not with accumulate, an activation or
  // gelu_input. Overlaps none of the others.
  Tensor residual;
};

void MatMul(Device& device, const MatMulArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_MATMUL_H_
