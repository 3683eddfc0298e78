#include "worker/layers/new_layers.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

// An instruction of its own.
class NothingToDo final : public Layer {
 public:
  void Forward(const LayerCall&) const override {}
};

absl::StatusOr<std::unique_ptr<Layer>> NewNothing(const OpBinding&) {
  return std::make_unique<NothingToDo>();
}

struct Row {
  Op::Kind kind;
  NewLayer* new_layer;
};
constexpr Row kKinds[] = {
    {Op::EMBED, NewEmbed},
    {Op::DROPOUT, NewDropout},
    {Op::NORM, NewNorm},
    {Op::LINEAR, NewLinear},
    {Op::LOW_RANK, NewLowRank},
    {Op::ROPE, NewRope},
    {Op::ATTENTION, NewAttention},
    {Op::GELU, NewGelu},
    {Op::SWIGLU, NewSwiGlu},
    {Op::HEAD_NORM, NewHeadNorm},
    {Op::JOIN_HEADS, NewJoinHeads},
    {Op::ADD, NewAdd},
    {Op::CROSS_ENTROPY, NewCrossEntropy},
    {Op::CROSS_ENTROPY_PARTS, NewCrossEntropyParts},
    {Op::EXCHANGE, NewNothing},
    {Op::PACK, NewPack},
    {Op::UNPACK, NewPack},
    {Op::SPLIT, NewSplit},
    {Op::CONCAT, NewConcat},
    {Op::FORK, NewFork},
    {Op::ATTENTION_PART, NewAttentionPart},
    {Op::RETURN, NewNothing},
    {Op::SCORES, NewScores},
    {Op::SOFTMAX, NewSoftmax},
    {Op::WEIGHTED_VALUES, NewWeightedValues},
    {Op::ROW_SUMS, NewRowSums},
    {Op::SPLIT_NORM, NewSplitNorm},
    {Op::WEIGHT, NewWeight},
    {Op::PRODUCT, NewProduct},
    {Op::ROUTE, NewRoute},
    {Op::ROUTER_LOAD, NewRouterLoad},
    {Op::ROUTER_LOSS, NewRouterLoss},
    {Op::CAPACITY, NewCapacity},
    {Op::DISPATCH, NewDispatch},
    {Op::GROUPED_LINEAR, NewGroupedLinear},
    {Op::COMBINE, NewCombine},
    {Op::REGROUP, NewRegroup},
    {Op::UNGROUP, NewUngroup},
};

absl::StatusOr<std::unique_ptr<Layer>> NewLayerOf(const OpBinding& op) {
  for (const Row& row : kKinds) {
    if (row.kind == op.op().kind()) return row.new_layer(op);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("this worker has no layer for ops of kind ", op.op().kind(),
                   "; scheduler and worker must be of one build"));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<Layer>>> NewLayers(
    const UnitBinding& unit) {
  std::vector<std::unique_ptr<Layer>> layers;
  for (int op = 0; op < unit.table.ops_size(); ++op) {
    ASSIGN_OR_RETURN(std::unique_ptr<Layer> layer,
                     NewLayerOf(OpBinding(unit, op)));
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace troupe
