// Room of experts: an expert takes at most so many choices of each sequence.
// Places are given in the order of GShard's algorithm 1 (arXiv 2006.16668): all
// first choices of the sequence, by position, before any second one, and so on.
// A choice that finds no place has gate 0: its row adds nothing to the token,
// which goes on by the residual.
#ifndef TROUPE_OPS_CAPACITY_H_
#define TROUPE_OPS_CAPACITY_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

class Device;

struct CapacityArgs {
  Tensor choices;       // i32 [n, k]: sequences behind one another
  Tensor gates;         // f32 [n, k]
  int64_t tokens = 0;   // of a sequence
  int64_t experts = 0;  // choices are below
  int64_t places = 0;   // of an expert in a sequence
  Tensor kept;          // f32 [n, k], written; may be gates
  Tensor dropped;       // optional, f64 [1], added to: choices without a place
};

void Capacity(Device& device, const CapacityArgs& args);

// A gate of 0 was dropped, or has no slope.
struct CapacityBackwardArgs {
  Tensor kept;     // as the forward wrote it
  Tensor d_kept;   // f32 [n, k]
  Tensor d_gates;  // f32 [n, k], written; may be d_kept
};

void CapacityBackward(Device& device, const CapacityBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_CAPACITY_H_
