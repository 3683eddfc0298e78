// Products of rows with the matrix of their group: the three products of the
// experts' linear layers, where the rows of expert g lie behind one another,
//
//   y[i]   = x[i] W[g]^T                      of rows i in [offsets[g],
//   dx[i]  = dy[i] W[g]                         offsets[g + 1])
//   dW[g] += sum over i of dy[i]^T x[i]
//
// (the grouped product of MegaBlocks, arXiv 2211.15841). Sums are in f32 and
// rounded once. A row's result depends on its own numbers and its group's
// matrix, not on which rows lie beside it, up to rounding.
//
// X is f32, bf16 or fp16, the same for all but gradients of weights. Rows from
// offsets[groups] on are left alone; they and groups without rows cost nothing.
// On a CPU threads share the groups, and none waits for another before the end.
// A GPU multiplies group by group: the host reads the offsets in each call, for
// which it waits until the work before it on the stream is done (some 10 us),
// and then enqueues a product for each group (some 5 us each).
#ifndef TROUPE_OPS_GROUPED_MATMUL_H_
#define TROUPE_OPS_GROUPED_MATMUL_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

// c overlaps neither a nor b.
struct GroupedMatMulArgs {
  Tensor a;  // X [rows, k]; rows may be strided
  // X [groups, k, n], or [groups, n, k] where transpose_b; may be a slice of
  // larger matrices, such as the half of gate and up.
  Tensor b;
  Tensor c;        // X [rows, n]; rows may be strided. Written
  Tensor offsets;  // i32 [groups + 1], rising from 0 to at most rows
  bool transpose_b = false;
  bool accumulate = false;  // c += the product
};

void GroupedMatMul(Device& device, const GroupedMatMulArgs& args);

struct GroupedWeightGradientArgs {
  Tensor x;        // X [rows, in]; rows may be strided
  Tensor dy;       // X [rows, out]; rows may be strided
  Tensor offsets;  // i32 [groups + 1]
  Tensor dw;       // f32 or X [groups, out, in] dense
  // dw += the sum; else it is written, zeros where a group has no rows.
  bool accumulate = false;
};

void GroupedWeightGradient(Device& device,
                           const GroupedWeightGradientArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_GROUPED_MATMUL_H_
