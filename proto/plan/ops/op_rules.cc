#include "proto/plan/ops/op_rules.h"

#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {
namespace {

struct Row {
  Op::Kind kind;
  std::vector<OperandRule> (*operands)();
  OpRules (*rules)(const OpView& op);
};
constexpr Row kKinds[] = {
    {Op::EMBED, EmbedOperands, EmbedRules},
    {Op::DROPOUT, DropoutOperands, DropoutRules},
    {Op::NORM, NormOperands, NormRules},
    {Op::LINEAR, LinearOperands, LinearRules},
    {Op::ROPE, RopeOperands, RopeRules},
    {Op::ATTENTION, AttentionOperands, AttentionRules},
    {Op::GELU, GeluOperands, GeluRules},
    {Op::SWIGLU, SwiGluOperands, SwiGluRules},
    {Op::ADD, AddOperands, AddRules},
    {Op::HEAD_NORM, HeadNormOperands, HeadNormRules},
    {Op::CROSS_ENTROPY, CrossEntropyOperands, CrossEntropyRules},
};

void AddTo(const Work& work, Work& sum) {
  sum.set_matmul_flops(sum.matmul_flops() + work.matmul_flops());
  sum.set_attention_flops(sum.attention_flops() + work.attention_flops());
  sum.set_memory_bytes(sum.memory_bytes() + work.memory_bytes());
  sum.set_elementwise_ops(sum.elementwise_ops() + work.elementwise_ops());
  sum.set_wait_seconds(sum.wait_seconds() + work.wait_seconds());
}

}  // namespace

OpRules RulesOf(const OpView& op) {
  for (const Row& row : kKinds) {
    if (row.kind == op.op().kind()) return row.rules(op);
  }
  CHECK(false) << "no kind of op: " << op.op().kind();
  return {};
}

std::vector<OperandRule> OperandsOf(Op::Kind kind) {
  for (const Row& row : kKinds) {
    if (row.kind == kind) return row.operands();
  }
  CHECK(false) << "no kind of op: " << kind;
  return {};
}

UnitWork WorkOf(const UnitTable& table) {
  UnitWork sum;
  for (const Op& op : table.ops()) {
    const OpRules rules = RulesOf({table, op});
    AddTo(rules.forward, sum.forward);
    AddTo(rules.backward_input, sum.backward_input);
    AddTo(rules.backward_weight, sum.backward_weight);
  }
  return sum;
}

}  // namespace troupe
