// Which experts a token goes to, and with what weight: the router of a mixture
// of experts behind its product. With n tokens, e experts and k choices,
//
//   s        = softmax(logits), or sigmoid(logits), row by row
//   choices  = the k largest of s + bias, by falling s + bias; of equal ones
//              the lower expert comes first
//   gates    = scale s[choices], or scale s[choices] / sum of s[choices]
//
// Softmax is that of Switch (arXiv 2101.03961), Mixtral, Qwen MoE and OLMoE;
// sigmoid with a bias and groups that of DeepSeek-V3 (arXiv 2412.19437,
// equations 12 to 16). The bias selects experts and is no part of the gates.
// With groups, the experts form `groups` equal neighbouring blocks; a block's
// score is the sum of its two largest s + bias (of a block of one expert, that
// expert's), and only experts of the
// `groups_used` best blocks (of equal ones the lower) can be chosen.
//
// All is f32: rounding decides between experts. Rows are independent of one
// another, so choices depend on the token alone. NaN counts as larger than any
// number: NaN logits are chosen first, in order of experts, and make gates NaN.
// With softmax one of them makes all scores of its row NaN.
#ifndef TROUPE_OPS_ROUTE_H_
#define TROUPE_OPS_ROUTE_H_

#include "ops/tensor.h"
#include "ops/token_rows.h"

namespace troupe {

class Device;

enum class RouteScores { kSoftmax, kSigmoid };

struct RouteRule {
  RouteScores scores = RouteScores::kSoftmax;
  bool renormalise = false;  // gates of a token add up to `scale`
  float scale = 1;
  int groups = 1;
  int groups_used = 1;
};

// k is at most e, and at most what the groups used have together.
struct RouteArgs {
  Tensor logits;  // f32 [n, e]
  Tensor bias;    // optional, f32, bf16 or fp16 [e]
  RouteRule rule;
  Tensor scores;     // f32 [n, e], written: s; may be logits
  Tensor choices;    // i32 [n, k], written
  Tensor gates;      // f32 [n, k], written
  Tensor logsumexp;  // optional, f32 [n], written: of a row's logits
};

void Route(Device& device, const RouteArgs& args);

// The gradient of the logits, from those of the gates, of the scores and of the
// logsumexp. Those of scores and logsumexp come from losses
// (ops/router_loss.h).
struct RouteBackwardArgs {
  Tensor scores;       // as in the forward
  Tensor choices;      // as in the forward
  Tensor d_gates;      // f32 [n, k]
  RouteRule rule;      // as in the forward
  Tensor d_scores;     // optional, f32 [n, e]
  Tensor d_logsumexp;  // optional, f32 [n]
  // With d_logsumexp and sigmoid: as in the forward. (With softmax the scores
  // are all that it needs.)
  Tensor logsumexp;
  Tensor logits;
  Tensor d_logits;  // f32 [n, e], written; may be scores, d_scores or logits
};

void RouteBackward(Device& device, const RouteBackwardArgs& args);

// How often each expert is chosen in each sequence.
struct RouteLoadArgs {
  Tensor choices;  // as in the forward
  TokenRows rows;
  // f32 [sequences, e], written or added to. Counts up to 2^24 are exact.
  Tensor load;
  bool accumulate = false;
  // The first choices of tokens apart from their second ones, and so on: load is
  // [sequences x k, e], of each sequence k rows.
  bool by_choice = false;
};

void RouteLoad(Device& device, const RouteLoadArgs& args);

}  // namespace troupe

#endif  // TROUPE_OPS_ROUTE_H_
