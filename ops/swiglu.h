// The gate of Llama's feed-forward layer: SwiGLU (Shazeer, 2002.05202),
//
//   y = silu(gate) * up,  silu(x) = x / (1 + e^-x)
//
// where gate and up are two products of the same input, usually the column
// halves of one [rows, 2n] tensor.
//
// Rows may have a weight each: y = weight silu(gate) up. So an expert's output
// is weighted by its gate in front of the down product, which is linear, and
// the product's result need not be kept for the gate's gradient.
//
// Where groups of rows do not fill the tensors, offsets say where they end
// (ops/grouped_matmul.h): rows from there on are left alone, and cost nothing.
//
// X is f32, bf16 or fp16, the same for all tensors of a call but weights;
// computed in f32, each element stored is rounded once.
#ifndef TROUPE_OPS_SWIGLU_H_
#define TROUPE_OPS_SWIGLU_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

// All of one shape; rows of gate and up may be strided, y is dense.
struct SwiGluArgs {
  Tensor gate;  // X [rows, n]
  Tensor up;    // X [rows, n]
  Tensor y;     // X [rows, n], written; may be gate or up where that is dense
  Tensor weights;  // optional, f32 [rows]
  Tensor offsets;  // optional, i32 [groups + 1]: there are offsets[groups] rows
};

void SwiGlu(Device& device, const SwiGluArgs& args);

// All of one shape; rows may be strided, but for dy's. A gradient may overlay
// any of the tensors that are read, element for element: usually d_gate is gate
// and d_up is up.
struct SwiGluBackwardArgs {
  Tensor gate;       // X [rows, n], as in the forward
  Tensor up;         // X [rows, n], as in the forward
  Tensor dy;         // X [rows, n], dense: the gradient of y
  Tensor d_gate;     // X [rows, n], written
  Tensor d_up;       // X [rows, n], written; not d_gate
  Tensor weights;    // as in the forward
  Tensor d_weights;  // f32 [rows], written; with weights only
  Tensor offsets;    // as in the forward
};

void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_SWIGLU_H_
