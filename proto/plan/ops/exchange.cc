// EXCHANGE: y is x in another layout over an axis of the mesh, and x's gradient
// is y's in another. An instruction of its own, between two segments of the
// unit (proto/plan/segments.h); where nothing moves in a direction, they are
// the same memory.
//
//   inputs   x
//   outputs  y
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> ExchangeOperands() {
  return {{.name = "x"}, {.name = "y", .output = true}};
}

OpRules ExchangeRules(const OpView& op) {
  const Op::Exchange& exchange = op.op().exchange();
  OpRules rules;
  switch (exchange.forward()) {
    case COLLECTIVE_UNSPECIFIED:
      rules.in_place = {{.output = "y", .input = "x", .same = true}};
      break;
    case ALL_REDUCE:
      rules.in_place = {{"y", "x"}};
      break;
    default:
      break;
  }
  switch (exchange.backward()) {
    case COLLECTIVE_UNSPECIFIED:
      rules.gradients = {{"x", InputGradient::kOfOutput, "y"}};
      break;
    case ALL_REDUCE:
      rules.gradients = {{"x", InputGradient::kInPlace, "y"}};
      break;
    case REDUCE:
      rules.gradients = {{"x", InputGradient::kOnRoot}};
      break;
    default:
      rules.gradients = {{"x", InputGradient::kNew}};
      break;
  }
  return rules;
}

// RETURN: an exchange that moves nothing forward, and in backward not
// gradients: x was sent on, not kept, and is sent back by who has it as y, to
// be read by backward passes.
//
//   inputs   x
//            y
std::vector<OperandRule> ReturnOperands() {
  return {{.name = "x"}, {.name = "y"}};
}

OpRules ReturnRules(const OpView&) { return {}; }

absl::optional<Collective> TurnOf(const AxisCut& from, const AxisCut& to) {
  if (from == to) return COLLECTIVE_UNSPECIFIED;
  if (from.panel >= 0 || to.panel >= 0) {
    const AxisCut& panel = to.panel >= 0 ? to : from;
    const AxisCut own = {.placement = Layout::SHARD, .dim = panel.dim};
    if (from == own && to.placement == Layout::SHARD) return BROADCAST;
    if (to == own && from.placement == Layout::PARTIAL) return REDUCE;
    return absl::nullopt;
  }
  const bool summands = from.placement == Layout::PARTIAL;
  if (to.placement == Layout::REPLICATE) {
    return summands ? ALL_REDUCE : ALL_GATHER;
  }
  if (to.placement != Layout::SHARD) return absl::nullopt;
  if (summands) return REDUCE_SCATTER;
  if (from.placement != Layout::SHARD) {
    return to.shift == 0 ? absl::make_optional(SLICE) : absl::nullopt;
  }
  if (from.rows != to.rows && from.dim + to.dim == 1) {
    return COLLECTIVE_UNSPECIFIED;
  }
  if (from.dim != to.dim) return ALL_TO_ALL;
  if (from.shift + 1 == to.shift) return SHIFT;
  return absl::nullopt;
}

}  // namespace troupe
