// The kinds of layers: a file each, as in proto/plan/ops, where the operands
// are described. Rows of the table in new_layers.cc.
#ifndef TROUPE_WORKER_LAYERS_KINDS_H_
#define TROUPE_WORKER_LAYERS_KINDS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/layers/layer.h"
#include "worker/layers/op_binding.h"

namespace troupe {

// InvalidArgument as OpBinding::Parameter.
using NewLayer = absl::StatusOr<std::unique_ptr<Layer>>(const OpBinding& op);

NewLayer NewAdd;
NewLayer NewAttention;
NewLayer NewAttentionPart;
NewLayer NewCapacity;
NewLayer NewCombine;
NewLayer NewConcat;
NewLayer NewCrossEntropy;
NewLayer NewCrossEntropyParts;
NewLayer NewDispatch;
NewLayer NewDropout;
NewLayer NewEmbed;
NewLayer NewFork;
NewLayer NewGelu;
NewLayer NewGroupedLinear;
NewLayer NewHeadNorm;
NewLayer NewJoinHeads;
NewLayer NewLinear;
NewLayer NewLowRank;
NewLayer NewRowSums;
NewLayer NewNorm;
NewLayer NewPack;
NewLayer NewProduct;
NewLayer NewRegroup;
NewLayer NewRope;
NewLayer NewRoute;
NewLayer NewRouterLoad;
NewLayer NewRouterLoss;
NewLayer NewScores;
NewLayer NewSoftmax;
NewLayer NewSplit;
NewLayer NewSplitNorm;
NewLayer NewSwiGlu;
NewLayer NewUngroup;
NewLayer NewWeight;
NewLayer NewWeightedValues;

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_KINDS_H_
