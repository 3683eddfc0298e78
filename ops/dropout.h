// Dropout whose mask is never stored: whether an element is kept is a pure
// function of the stream and of its *global* index, so backward, recomputation
// and any other plan draw the same mask.
//
// Element e is kept iff PhiloxUniform(PhiloxUint32(stream, e)) >= probability;
// kept ones are multiplied by 1 / (1 - probability). The gradient passes
// through the same function: ApplyDropout(x = dy, y = dx) is the backward.
#ifndef TROUPE_OPS_DROPOUT_H_
#define TROUPE_OPS_DROPOUT_H_

#include <cstdint>

#include "ops/tensor.h"
#include "proto/base/philox.h"

namespace troupe {

class Device;

// A mask over a tensor's elements in row-major order. `first_element` is the
// global index of the tensor's first one: for rows [r, ...) of a global
// activation with n columns it is r * n. Probability 0 means no dropout.
//
// A tensor may have some columns of each row only, [c, c + columns) of rows of
// `row_stride` global ones: its element (r, i) has the global index
// first_element + r * row_stride + i. ApplyDropout alone takes such masks.
struct DropoutMask {
  float probability = 0.0f;  // in [0, 1)
  PhiloxStream stream;
  uint64_t first_element = 0;
  int64_t columns = 0;     // of the tensor; 0: it has whole rows
  int64_t row_stride = 0;  // global columns, at least `columns`
};

// y = dropout(x) (+ residual). All dense, of one shape and one dtype, f32, bf16
// or fp16; computed in f32 and rounded once. y may be x or residual.
struct ApplyDropoutArgs {
  Tensor x;
  Tensor residual;  // optional
  Tensor y;
  DropoutMask mask;
};

void ApplyDropout(Device& device, const ApplyDropoutArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_DROPOUT_H_
