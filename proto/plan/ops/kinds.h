// The kinds of ops: a file each. Their operands are in its first lines.
#ifndef TROUPE_PROTO_PLAN_OPS_KINDS_H_
#define TROUPE_PROTO_PLAN_OPS_KINDS_H_

#include "proto/plan/ops/op_rules.h"

namespace troupe {

// What computes row by row, head by head or element by element: all of it on
// the same slice.
OpCut CutAlike(const OpView& op, const Wishes& wishes);
// The same, of elementwise ops that may have a weight of each row: an input
// `weights`.
OpCut CutWithRowWeights(const OpView& op, const Wishes& wishes);

// Whether the axis cuts the columns within each expert, and not the experts or
// the rows.
bool CutsWithinExperts(const Wishes& wishes);

std::vector<OperandRule> AddOperands();
OpRules AddRules(const OpView& op);

std::vector<OperandRule> AttentionOperands();
OpRules AttentionRules(const OpView& op);
OpCut AttentionCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> AttentionPartOperands();
OpRules AttentionPartRules(const OpView& op);

std::vector<OperandRule> CapacityOperands();
OpRules CapacityRules(const OpView& op);

std::vector<OperandRule> CombineOperands();
OpRules CombineRules(const OpView& op);
OpCut CombineCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> ConcatOperands();
OpRules ConcatRules(const OpView& op);

std::vector<OperandRule> CrossEntropyOperands();
OpRules CrossEntropyRules(const OpView& op);

std::vector<OperandRule> CrossEntropyPartsOperands();
OpRules CrossEntropyPartsRules(const OpView& op);

std::vector<OperandRule> DispatchOperands();
OpRules DispatchRules(const OpView& op);
OpCut DispatchCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> DropoutOperands();
OpRules DropoutRules(const OpView& op);

std::vector<OperandRule> EmbedOperands();
OpRules EmbedRules(const OpView& op);
OpCut EmbedCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> ExchangeOperands();
OpRules ExchangeRules(const OpView& op);

std::vector<OperandRule> ForkOperands();
OpRules ForkRules(const OpView& op);

std::vector<OperandRule> GeluOperands();
OpRules GeluRules(const OpView& op);
OpCut GeluCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> GroupedLinearOperands();
OpRules GroupedLinearRules(const OpView& op);
OpCut GroupedLinearCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> HeadNormOperands();
OpRules HeadNormRules(const OpView& op);

std::vector<OperandRule> JoinHeadsOperands();
OpRules JoinHeadsRules(const OpView& op);
OpCut JoinHeadsCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> LinearOperands();
OpRules LinearRules(const OpView& op);
OpCut LinearCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> LowRankOperands();
OpRules LowRankRules(const OpView& op);
OpCut LowRankCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> RowSumsOperands();
OpRules RowSumsRules(const OpView& op);
OpCut RowSumsCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> NormOperands();
OpRules NormRules(const OpView& op);
OpCut NormCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> PackOperands();
OpRules PackRules(const OpView& op);
OpRules UnpackRules(const OpView& op);

std::vector<OperandRule> ProductOperands();
OpRules ProductRules(const OpView& op);
OpCut ProductCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> RegroupOperands();
OpRules RegroupRules(const OpView& op);
OpCut RegroupCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> ReturnOperands();
OpRules ReturnRules(const OpView& op);

std::vector<OperandRule> RopeOperands();
OpRules RopeRules(const OpView& op);

std::vector<OperandRule> RouteOperands();
OpRules RouteRules(const OpView& op);

std::vector<OperandRule> RouterLoadOperands();
OpRules RouterLoadRules(const OpView& op);
OpCut RouterLoadCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> RouterLossOperands();
OpRules RouterLossRules(const OpView& op);
OpCut RouterLossCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> ScoresOperands();
OpRules ScoresRules(const OpView& op);

std::vector<OperandRule> SoftmaxOperands();
OpRules SoftmaxRules(const OpView& op);

std::vector<OperandRule> SplitOperands();
OpRules SplitRules(const OpView& op);

std::vector<OperandRule> SplitNormOperands();
OpRules SplitNormRules(const OpView& op);
OpCut SplitNormCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> SwiGluOperands();
OpRules SwiGluRules(const OpView& op);
OpCut SwiGluCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> UngroupOperands();
OpRules UngroupRules(const OpView& op);
OpCut UngroupCut(const OpView& op, const Wishes& wishes);

std::vector<OperandRule> WeightedValuesOperands();
OpRules WeightedValuesRules(const OpView& op);

std::vector<OperandRule> WeightOperands();
OpRules WeightRules(const OpView& op);
OpCut WeightCut(const OpView& op, const Wishes& wishes);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_KINDS_H_
