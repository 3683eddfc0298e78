// EXCHANGE: y is x in another layout over an axis of the mesh, and x's gradient
// is y's in another. An instruction of its own, between two segments of the
// unit (proto/plan/segments.h); where nothing moves in a direction, they are
// the same memory.
//
//   inputs   x
//            offsets  [ranks, experts + 1], i32: of all ranks' rows; with
//                     Op.round
//            into     rows that other rounds have brought back; optional
//   outputs  y
//
// With Op.round the ranks exchange rows of tokens (proto/base/expert_rounds.h):
// to the experts x is what a rank has dispatched and y what a round may bring,
// and back the other way around. Rows are [.., .., .., columns], or
// [.., .., ..] where each is one number. Back, y is `into` with the round's
// rows; of the gradient of dispatched rows each round makes its own.
#include "proto/plan/ops/kinds.h"

namespace troupe {

std::vector<OperandRule> ExchangeOperands() {
  return {{.name = "x"},
          {.name = "offsets", .optional = true, .dims = 2},
          {.name = "into", .optional = true},
          {.name = "y", .output = true}};
}

namespace {

OpRules RoundRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"x", op.op().round().back() ? InputGradient::kNew
                                                  : InputGradient::kInParts}};
  rules.backward_input_reads = {"offsets"};
  if (op.HasInput("into")) {
    rules.gradients.push_back({"into", InputGradient::kOfOutput, "y"});
    rules.in_place = {{.output = "y", .input = "into"}};
  }
  return rules;
}

}  // namespace

OpRules ExchangeRules(const OpView& op) {
  if (op.op().has_round()) return RoundRules(op);
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
      rules.gradients = {{"x", InputGradient::kInParts}};
      break;
    default:
      rules.gradients = {{"x", InputGradient::kNew}};
      break;
  }
  return rules;
}

// RETURN: an exchange that moves nothing forward, and in backward not
// gradients: x was sent on, not kept, and is sent back by the rank that has it
// as y, to be read by backward passes.
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
