#include "proto/plan/ops/op_rules.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/ops/kinds.h"

namespace troupe {
namespace {

struct Row {
  Op::Kind kind;
  std::vector<OperandRule> (*operands)();
  OpRules (*rules)(const OpView& op);
  OpCut (*cut)(const OpView& op, const Wishes& wishes) = nullptr;
  bool mixes_layouts = false;
};
constexpr bool kMixesLayouts = true;
constexpr Row kKinds[] = {
    {Op::EMBED, EmbedOperands, EmbedRules, EmbedCut, kMixesLayouts},
    {Op::DROPOUT, DropoutOperands, DropoutRules},
    {Op::NORM, NormOperands, NormRules, NormCut},
    {Op::LINEAR, LinearOperands, LinearRules, LinearCut, kMixesLayouts},
    {Op::ROPE, RopeOperands, RopeRules},
    {Op::ATTENTION, AttentionOperands, AttentionRules, AttentionCut},
    {Op::GELU, GeluOperands, GeluRules, GeluCut, kMixesLayouts},
    {Op::SWIGLU, SwiGluOperands, SwiGluRules, SwiGluCut, kMixesLayouts},
    {Op::ADD, AddOperands, AddRules},
    {Op::HEAD_NORM, HeadNormOperands, HeadNormRules},
    {Op::CROSS_ENTROPY, CrossEntropyOperands, CrossEntropyRules},
    {Op::CROSS_ENTROPY_PARTS, CrossEntropyPartsOperands,
     CrossEntropyPartsRules},
    {Op::EXCHANGE, ExchangeOperands, ExchangeRules},
    {Op::PACK, PackOperands, PackRules},
    {Op::UNPACK, PackOperands, UnpackRules},
    {Op::SPLIT, SplitOperands, SplitRules},
    {Op::CONCAT, ConcatOperands, ConcatRules},
    {Op::FORK, ForkOperands, ForkRules},
    {Op::ATTENTION_PART, AttentionPartOperands, AttentionPartRules},
    {Op::RETURN, ReturnOperands, ReturnRules},
    {Op::SCORES, ScoresOperands, ScoresRules},
    {Op::SOFTMAX, SoftmaxOperands, SoftmaxRules},
    {Op::WEIGHTED_VALUES, WeightedValuesOperands, WeightedValuesRules},
    {Op::ROW_SUMS, RowSumsOperands, RowSumsRules, RowSumsCut, kMixesLayouts},
    {Op::SPLIT_NORM, SplitNormOperands, SplitNormRules, SplitNormCut,
     kMixesLayouts},
    {Op::WEIGHT, WeightOperands, WeightRules, WeightCut},
    {Op::PRODUCT, ProductOperands, ProductRules, ProductCut, kMixesLayouts},
    {Op::ROUTE, RouteOperands, RouteRules},
    {Op::DISPATCH, DispatchOperands, DispatchRules, DispatchCut},
    {Op::GROUPED_LINEAR, GroupedLinearOperands, GroupedLinearRules,
     GroupedLinearCut, kMixesLayouts},
    {Op::COMBINE, CombineOperands, CombineRules, CombineCut},
    {Op::REGROUP, RegroupOperands, RegroupRules, RegroupCut},
    {Op::UNGROUP, UngroupOperands, UngroupRules, UngroupCut},
    {Op::ROUTER_LOAD, RouterLoadOperands, RouterLoadRules, RouterLoadCut,
     kMixesLayouts},
    {Op::ROUTER_LOSS, RouterLossOperands, RouterLossRules, RouterLossCut,
     kMixesLayouts},
    {Op::CAPACITY, CapacityOperands, CapacityRules},
    {Op::LOW_RANK, LowRankOperands, LowRankRules, LowRankCut, kMixesLayouts},
    {Op::JOIN_HEADS, JoinHeadsOperands, JoinHeadsRules, JoinHeadsCut,
     kMixesLayouts},
};

// Of inputs that need none; and what the passes read and do for those only, or
// for parameters that are frozen.
void LeaveOutGradients(const OpView& op, OpRules& rules) {
  std::vector<InputGradient>& gradients = rules.gradients;
  if (!gradients.empty()) {
    gradients.erase(
        std::remove_if(gradients.begin(), gradients.end(),
                       [&op](const InputGradient& gradient) {
                         return op.input(gradient.input).no_gradient();
                       }),
        gradients.end());
    if (gradients.empty()) {
      rules.backward_input_reads.clear();
      rules.backward_input.Clear();
      rules.products.backward_input.clear();
    }
  }
  if (op.op().frozen_parameters().empty() || TrainsAny(op.op())) return;
  rules.backward_weight_reads.clear();
  rules.backward_weight.Clear();
  rules.products.backward_weight.clear();
}

const Row& RowOf(Op::Kind kind) {
  for (const Row& row : kKinds) {
    if (row.kind == kind) return row;
  }
  CHECK(false) << "no kind of op: " << kind;
  return kKinds[0];
}

}  // namespace

bool CutsWithinExperts(const Wishes& wishes) {
  const auto cuts = [&wishes](Dim::Kind kind) {
    return std::count(wishes.kinds.begin(), wishes.kinds.end(), kind) > 0;
  };
  return cuts(Dim::INTERMEDIATE) && !cuts(Dim::EXPERT_WEIGHTS);
}

bool CutsColumns(const TensorSpec& tensor, const AxisCut& cut) {
  return cut.placement == Layout::SHARD && cut.dim == tensor.dims_size() - 1;
}

AxisCut GradientWish(const TensorSpec& tensor, const AxisCut& value,
                     const std::vector<Dim::Kind>& kinds) {
  const bool of_rows =
      std::any_of(kinds.begin(), kinds.end(), [](Dim::Kind kind) {
        return kind == Dim::BATCH || kind == Dim::SEQUENCE;
      });
  if (value.placement != Layout::REPLICATE || !of_rows) return value;
  for (const Dim& dim : tensor.dims()) {
    if (dim.sections(0).kind() == Dim::INNER) {
      return {.placement = Layout::PARTIAL};
    }
  }
  return value;
}

OpCut CutAlike(const OpView& op, const Wishes& wishes) {
  OpCut cut;
  for (const Op::Operand& input : op.op().inputs()) {
    cut.inputs.push_back(
        {wishes.tensors[input.tensor()], wishes.gradients[input.tensor()]});
  }
  for (const Op::Operand& output : op.op().outputs()) {
    const AxisCut& wish = wishes.tensors[output.tensor()];
    cut.outputs.push_back({wish, wishes.gradients[output.tensor()]});
    cut.sums_parameters |= wish.placement == Layout::SHARD;
  }
  return cut;
}

void AddTo(const Work& work, Work& sum) {
  sum.set_matmul_flops(sum.matmul_flops() + work.matmul_flops());
  sum.set_attention_flops(sum.attention_flops() + work.attention_flops());
  sum.set_memory_bytes(sum.memory_bytes() + work.memory_bytes());
  sum.set_elementwise_ops(sum.elementwise_ops() + work.elementwise_ops());
  sum.set_wait_seconds(sum.wait_seconds() + work.wait_seconds());
}

OpRules RulesOf(const OpView& op) {
  OpRules rules = RowOf(op.op().kind()).rules(op);
  LeaveOutGradients(op, rules);
  return rules;
}

std::vector<int> OwnGradientsOf(const Op& op, const OpRules& rules) {
  std::vector<int> own;
  for (int i = 0; i < op.outputs_size(); ++i) {
    const auto& names = rules.own_gradients;
    if (std::find(names.begin(), names.end(), op.outputs(i).name()) !=
        names.end()) {
      own.push_back(i);
    }
  }
  return own;
}

bool TrainsByOwnGradients(const Op& op, const OpRules& rules) {
  return TrainsAny(op) && !rules.own_gradients.empty();
}

OpCut CutOf(const OpView& op, const Wishes& wishes) {
  const Row& row = RowOf(op.op().kind());
  return row.cut != nullptr ? row.cut(op, wishes) : CutAlike(op, wishes);
}

bool MixesLayouts(Op::Kind kind) { return RowOf(kind).mixes_layouts; }

std::vector<OperandRule> OperandsOf(Op::Kind kind) {
  return RowOf(kind).operands();
}

UnitWork WorkOf(const UnitTable& table) {
  return WorkOf(table, 0, table.ops_size());
}

UnitWork WorkOf(const UnitTable& table, int begin, int end) {
  UnitWork sum;
  for (int i = begin; i < end; ++i) {
    const Op& op = table.ops(i);
    const OpRules rules = RulesOf({table, op});
    AddTo(rules.forward, sum.forward);
    AddTo(rules.backward_input, sum.backward_input);
    AddTo(rules.backward_weight, sum.backward_weight);
  }
  return sum;
}

}  // namespace troupe
