// Normally distributed initial weights. Element i of a tensor is a pure
// function of (stream, global index), so that each rank fills only its shard
// and all plans start from the same weights.
//
// Global element e belongs to Philox block e / 4, whose four numbers make two
// pairs; elements 0 and 1 of the block are the two Box-Muller values of the
// first pair (a, b), elements 2 and 3 those of the second:
//
//   u = (top 24 bits of a + 1) / 2^24,  w = (top 24 bits of b) / 2^24
//   even element: sqrt(-2 ln u) cos(2 pi w);  odd: sqrt(-2 ln u) sin(2 pi w)
//
// computed in double and rounded once.
#ifndef TROUPE_OPS_RANDOM_H_
#define TROUPE_OPS_RANDOM_H_

#include <cstdint>

#include "ops/tensor.h"
#include "proto/base/philox.h"

namespace troupe {

class Device;

struct FillNormalArgs {
  Tensor x;  // f32, dense, written
  float mean = 0.0f;
  float standard_deviation = 1.0f;
  PhiloxStream stream;
  uint64_t first_index = 0;  // the global index of x's first element
};

void FillNormal(Device& device, const FillNormalArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_RANDOM_H_
