// Softmax over whole rows of attention scores, for attention that has them in
// memory (Sequence Parallelism, Li et al., 2105.13120); ops/attention.h needs
// none. Row i of a matrix of rows x keys is of the query at position
// first_position + i of its sequence, and sees the keys up to that:
//
//   y[i][j] = exp(scale x[i][j]) / sum over k <= first_position + i of
//             exp(scale x[i][k])             where j <= first_position + i,
//             else 0
//
// Leading dims count such matrices. Where sequences are several documents one
// after the other, a row sees no key before its document either: `documents`
// says where that begins, of as many sequences as divide the matrices.
// f32, bf16 or fp16, all of a call alike;
// computed in f32 and rounded once. What x holds at keys that are not seen does
// not matter.
#ifndef TROUPE_OPS_CAUSAL_SOFTMAX_H_
#define TROUPE_OPS_CAUSAL_SOFTMAX_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct CausalSoftmaxArgs {
  Tensor x;                    // [..., rows, keys] dense
  Tensor y;                    // as x, written; may be x
  float scale = 1.0f;          // > 0
  int64_t first_position = 0;  // with the rows at most the keys
  Tensor documents;            // optional, [sequences, keys] (ops/documents.h)
};

void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args);

// dx = scale y (dy - sum of dy y over the row), 0 at keys that are not seen.
struct CausalSoftmaxBackwardArgs {
  Tensor y;   // of the forward
  Tensor dy;  // as y
  Tensor dx;  // as y, written; may be dy
  float scale = 1.0f;
  int64_t first_position = 0;
  Tensor documents;
};

void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_CAUSAL_SOFTMAX_H_
