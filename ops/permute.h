// Rows of tokens in the order of their experts, and back. With n tokens of k
// choices each there are n k rows: choice j of token t is number t k + j.
//
//   SortChoices   sources  the numbers of choices, sorted by expert; choices of
//                          one expert stay in order (a stable sort)
//                 places   where each choice went: the inverse of sources
//                 offsets  row offsets[i] is the first of expert i, offsets[e]
//                          is n k
//   GatherRows    y[i] = x[sources[i] / k]
//   SumRows       y[t] = x[places[t, 0]] + ... + x[places[t, k - 1]], in the
//                 order of a token's choices
//
// GatherRows and SumRows are each other's backward: both are linear, and one is
// the other transposed. Sums are in f32 and rounded once.
#ifndef TROUPE_OPS_PERMUTE_H_
#define TROUPE_OPS_PERMUTE_H_

#include "ops/tensor.h"

namespace troupe {

class Device;

struct SortChoicesArgs {
  Tensor choices;  // i32 [n, k], each in [0, e)
  Tensor sources;  // i32 [n k], written
  Tensor places;   // i32 [n, k], written
  Tensor offsets;  // i32 [e + 1], written
};

void SortChoices(Device& device, const SortChoicesArgs& args);

// X is f32, bf16 or fp16, the same for x and y.
struct GatherRowsArgs {
  Tensor x;         // X [n, c] dense
  Tensor sources;   // i32 [m]
  int choices = 1;  // k
  Tensor y;         // X [m, c] dense, written
};

void GatherRows(Device& device, const GatherRowsArgs& args);

struct SumRowsArgs {
  Tensor x;         // X [m, c] dense
  Tensor places;    // i32 [n, k], each in [0, m)
  Tensor residual;  // optional, X [n, c]: added last; may be y
  Tensor y;         // X [n, c] dense, written
};

void SumRows(Device& device, const SumRowsArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_PERMUTE_H_
