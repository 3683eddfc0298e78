#include "ops/route.h"

#include "ops/check_tensor.h"
#include "ops/device.h"
#include "ops/kernel_table.h"

namespace troupe {
namespace {

// Choices are i32 [n, k] of rows of scores.
void CheckChoices(const Tensor& choices, const Tensor& scores) {
  CHECK_DTYPE(choices, DType::kI32);
  CHECK(choices.dense() && choices.rows() == scores.rows() &&
        choices.columns() <= scores.columns())
      << "choices are " << choices.ShapeString() << ", of scores "
      << scores.ShapeString();
}

void CheckRule(const RouteRule& rule, int64_t experts, int64_t choices) {
  CHECK(rule.groups >= 1 && experts % rule.groups == 0)
      << rule.groups << " groups of " << experts << " experts";
  CHECK(rule.groups_used >= 1 && rule.groups_used <= rule.groups)
      << rule.groups_used << " groups used of " << rule.groups;
  const int64_t eligible = experts / rule.groups * rule.groups_used;
  CHECK(choices >= 1 && choices <= eligible)
      << choices << " choices among " << eligible << " experts";
}

}  // namespace

void Route(Device& device, const RouteArgs& args) {
  CHECK_DENSE_F32(args.logits);
  const int64_t n = args.logits.rows(), e = args.logits.columns();
  CHECK_LIKE(args.scores, args.logits);
  CheckChoices(args.choices, args.scores);
  const int64_t k = args.choices.columns();
  CheckRule(args.rule, e, k);
  CHECK_F32_ELEMENTS(args.gates, n * k);
  if (args.bias.defined()) {
    CHECK_DENSE_ACTIVATION(args.bias);
    CHECK(args.bias.elements() == e) << args.bias.ShapeString();
  }
  if (args.logsumexp.defined()) CHECK_F32_ELEMENTS(args.logsumexp, n);
  device.kernels().route(device, args);
}

void RouteBackward(Device& device, const RouteBackwardArgs& args) {
  CHECK_DENSE_F32(args.scores);
  const int64_t n = args.scores.rows();
  CheckChoices(args.choices, args.scores);
  const int64_t k = args.choices.columns();
  CheckRule(args.rule, args.scores.columns(), k);
  CHECK_F32_ELEMENTS(args.d_gates, n * k);
  CHECK_LIKE(args.d_logits, args.scores);
  if (args.d_scores.defined()) CHECK_LIKE(args.d_scores, args.scores);
  if (args.d_logsumexp.defined()) {
    CHECK_F32_ELEMENTS(args.d_logsumexp, n);
    if (args.rule.scores == RouteScores::kSigmoid) {
      CHECK_F32_ELEMENTS(args.logsumexp, n);
      CHECK_LIKE(args.logits, args.scores);
    }
  }
  device.kernels().route_backward(device, args);
}

void RouteLoad(Device& device, const RouteLoadArgs& args) {
  CHECK_DTYPE(args.choices, DType::kI32);
  CHECK(args.choices.dense()) << args.choices.ShapeString() << " with gaps";
  CHECK_DENSE_F32(args.load);
  const int64_t n = args.choices.rows();
  const int64_t rows = args.by_choice ? args.choices.columns() : 1;
  CHECK(n == 0 || (args.rows.Of(n - 1) + 1) * rows <= args.load.rows())
      << n << " rows of choices of more sequences than the load has, "
      << args.load.ShapeString();
  device.kernels().route_load(device, args);
}

}  // namespace troupe
