// Room of experts: an expert takes a limited number of choices of each
// sequence. Places are given in the order of GShard's algorithm 1 (arXiv
// 2006.16668): all first choices of the sequence, by position, before any
// second one, and so on. A choice that finds no place has gate 0: its row adds
// nothing to the token, which goes on by the residual.
//
// A rank may have some consecutive tokens of a sequence only. It then needs to
// know how often each expert was chosen by the tokens of each rank: lower
// choices of all ranks, and the same choice of ranks before it, find their
// places first.
#ifndef TROUPE_OPS_CAPACITY_H_
#define TROUPE_OPS_CAPACITY_H_

#include <cstdint>

#include "ops/tensor.h"
#include "ops/token_rows.h"

namespace troupe {

class Device;

struct CapacityArgs {
  Tensor choices;       // i32 [n, k]
  Tensor gates;         // f32 [n, k]
  TokenRows rows;       // REQUIRES rows of each sequence
  int64_t experts = 0;  // choices are below
  int64_t places = 0;   // of an expert in a sequence
  // Optional, f32 [ranks, sequences x k, experts]: RouteLoad by choice of the
  // rows of all ranks that have some of the sequences, in the order of these,
  // and which of them this one is. Without it sequences are whole.
  Tensor counts;
  int64_t rank = 0;
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
