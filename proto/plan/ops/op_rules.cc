#include "proto/plan/ops/op_rules.h"

#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {
namespace {

struct Row {
  Op::Kind kind;
  OpRules (*rules)(const OpView& op);
};
constexpr Row kKinds[] = {
    {Op::EMBED, EmbedRules}, {Op::DROPOUT, DropoutRules},
    {Op::NORM, NormRules},   {Op::LINEAR, LinearRules},
    {Op::ROPE, RopeRules},   {Op::ATTENTION, AttentionRules},
    {Op::GELU, GeluRules},   {Op::SWIGLU, SwiGluRules},
    {Op::ADD, AddRules},     {Op::CROSS_ENTROPY, CrossEntropyRules},
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
