// Losses of a router, and what it does, from its scores. With n tokens, e
// experts, f the load of each expert over the mean, s a token's scores and
// p = s / sum of s (with softmax p = s),
//
//   balance  the sum over tokens of sum over e of f[e] p[e]: GShard (arXiv
//            2006.16668, section 2.2), Switch (arXiv 2101.03961, equations 4 to
//            6); by sequence DeepSeek-V3 (arXiv 2412.19437, equations 17 to 20)
//   z        the sum over tokens of logsumexp(logits)^2 (ST-MoE, arXiv
//            2202.08906, equation 5)
//   entropy  the sum over tokens of -sum over e of p[e] ln p[e]
//
// p adds up to 1 however small a sigmoid's scores are, so that small scores do
// not lower the balance. f counts choices and has no gradient.
#ifndef TROUPE_OPS_ROUTER_LOSS_H_
#define TROUPE_OPS_ROUTER_LOSS_H_

#include "ops/tensor.h"
#include "ops/token_rows.h"

namespace troupe {

class Device;

struct RouterLossArgs {
  Tensor scores;  // f32 [n, e]
  // f = load_scale x load; optional, f32, bf16 or fp16 [sequences, e].
  Tensor load;
  double load_scale = 1;
  TokenRows rows;
  Tensor logsumexp;  // optional, f32 [n]
  Tensor choices;    // i32 [n, k]
  // Sums, f64, added to: [1] each, and of each expert its choices, [e].
  Tensor balance;  // with load
  Tensor z;        // with logsumexp
  Tensor entropy;
  Tensor rows_counted;  // n
  Tensor tokens;
};

void RouterLoss(Device& device, const RouterLossArgs& args);

// The gradients of balance_scale x balance and of z_scale x z.
struct RouterLossBackwardArgs {
  Tensor scores;  // as in the forward
  Tensor load;    // as in the forward; with d_scores
  double load_scale = 1;
  TokenRows rows;
  Tensor logsumexp;  // as in the forward; with d_logsumexp
  double balance_scale = 0;
  double z_scale = 0;
  Tensor d_scores;     // optional, f32 [n, e], written
  Tensor d_logsumexp;  // optional, f32 [n], written
};

void RouterLossBackward(Device& device, const RouterLossBackwardArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ROUTER_LOSS_H_
