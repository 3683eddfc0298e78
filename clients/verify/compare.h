// How far two runs of one job are apart: what `troupe verify` reports. Each run
// left its losses and its last two checkpoints; gradients are taken from those.
//
// A checkpoint has no gradients, but the optimizer's state does: AdamW's first
// moment is m_N = beta1 m_(N-1) + (1 - beta1) g_N, Lion's the same with beta2,
// and Muon's and SGD's momentum buffer
// u_N = momentum u_(N-1) + g_N (+ weight_decay w), so two consecutive states
// give the gradient of step N as the optimizer saw it, after clipping. Before
// the first step the state is zero. Where step N updated nothing, as gradients
// overflowed (fp16), what is compared in their place is the state itself.
#ifndef TROUPE_CLIENTS_VERIFY_COMPARE_H_
#define TROUPE_CLIENTS_VERIFY_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"

namespace troupe {

// One side: checkpoints after steps N - 1 and N.
struct RunCheckpoints {
  std::string before;  // empty where N is 1
  std::string after;
};

// ||a - b|| / ||b||. Infinite where that is no number: where something in it is
// none, and where only the reference is zero; 0 where both are.
double RelativeDistance(double apart, double norm);

// Of one tensor, over all its elements. Its norm counts as no less than it
// would be if its elements were as large as those of all tensors are on the
// average: what is all but zero, as biases are at first, has no size of its
// own, and AdamW moves by noise what has no gradient but noise (the bias of
// keys).
struct TensorDistance {
  std::string name;
  double weights = 0;
  double gradient = 0;  // 0 where the optimizer keeps no state, as of what is
                        // frozen
};

struct CompareOptions {
  RunCheckpoints run;
  RunCheckpoints reference;
  OptimizerSpec optimizer;  // resolved
};

// Every parameter, the furthest apart first. Reads a piece at a time. Errors of
// TensorReader; InvalidArgument where the two have not the same tensors, of the
// same shapes.
absl::StatusOr<std::vector<TensorDistance>> CompareCheckpoints(
    const CompareOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_VERIFY_COMPARE_H_
