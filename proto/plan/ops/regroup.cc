// REGROUP: rows as they came from the ranks that have the tokens, by source,
// into the order of this rank's experts (ops/regroup.h). UNGROUP undoes it.
// Op.round says of which round; how many rows there are, the table of all
// ranks' offsets says (proto/base/expert_rounds.h). Rows of x and of what is
// made of it that are beyond are left alone.
//
// REGROUP
//   inputs   x        [.., .., .., hidden]: received rows, as many as a round
//                     may have
//            gates    [.., .., ..], f32: of these rows
//            offsets  [ranks, experts + 1], i32: of all ranks' rows
//   outputs  rows     [.., .., .., hidden]: by expert, then source
//            row_gates [.., .., ..], f32
//            own_offsets [experts / ranks + 1], i32: the first row of each of
//                     this rank's experts
//
// UNGROUP
//   inputs   x        [.., .., .., hidden], by expert
//            offsets  [ranks, experts + 1], i32
//   outputs  y        [.., .., .., hidden], by source
//
// Where an axis cuts the experts' columns, each rank has a summand of what
// comes back of rows and gates, and of what UNGROUP is given.
#include "proto/plan/ops/kinds.h"

namespace troupe {
namespace {

// Each row is read and written once in either direction.
void SetWork(double bytes, OpRules& rules) {
  rules.backward_input_reads = {"offsets"};
  rules.forward.set_memory_bytes(2.0 * bytes);
  rules.backward_input.set_memory_bytes(2.0 * bytes);
}

}  // namespace

std::vector<OperandRule> RegroupOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "gates", .dims = 3},
          {.name = "offsets", .dims = 2},
          {.name = "rows", .output = true, .dims = 4},
          {.name = "row_gates", .output = true, .dims = 3},
          {.name = "own_offsets", .output = true, .dims = 1}};
}

OpRules RegroupRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew},
                     {"gates", InputGradient::kNew}};
  SetWork(Bytes(op.input("x")), rules);
  return rules;
}

OpCut RegroupCut(const OpView& op, const Wishes& wishes) {
  if (!CutsWithinExperts(wishes)) return CutAlike(op, wishes);
  constexpr TensorCut kSummed = {.value = {},
                                 .gradient = {.placement = Layout::PARTIAL}};
  return {.inputs = {kSummed, kSummed, {}}, .outputs = {kSummed, kSummed, {}}};
}

std::vector<OperandRule> UngroupOperands() {
  return {{.name = "x", .dims = 4},
          {.name = "offsets", .dims = 2},
          {.name = "y", .output = true, .dims = 4}};
}

OpRules UngroupRules(const OpView& op) {
  OpRules rules;
  rules.gradients = {{"x", InputGradient::kNew}};
  SetWork(Bytes(op.input("x")), rules);
  return rules;
}

OpCut UngroupCut(const OpView& op, const Wishes& wishes) {
  if (!CutsWithinExperts(wishes)) return CutAlike(op, wishes);
  constexpr TensorCut kSummand = {.value = {.placement = Layout::PARTIAL}};
  return {.inputs = {kSummand, {}}, .outputs = {kSummand}};
}

}  // namespace troupe
