// The CPU's kernels, each in the file of its op's name, and the table of them.
// What they do stands in ops/<name>.h, which has checked the arguments.
#ifndef TROUPE_OPS_CPU_KERNELS_H_
#define TROUPE_OPS_CPU_KERNELS_H_

#include "ops/kernel_table.h"

namespace troupe::cpu {

extern const KernelTable kKernels;

void MatMul(Device& device, const MatMulArgs& args);
void BiasGradient(Device& device, const BiasGradientArgs& args);
void Embedding(Device& device, const EmbeddingArgs& args);
void EmbeddingBackward(Device& device, const EmbeddingBackwardArgs& args);
void ApplyDropout(Device& device, const ApplyDropoutArgs& args);
void LayerNorm(Device& device, const LayerNormArgs& args);
void LayerNormBackwardInput(Device& device,
                            const LayerNormBackwardInputArgs& args);
void LayerNormBackwardWeight(Device& device,
                             const LayerNormBackwardWeightArgs& args);
void RmsNorm(Device& device, const RmsNormArgs& args);
void RmsNormBackwardInput(Device& device, const RmsNormBackwardInputArgs& args);
void RmsNormBackwardWeight(Device& device,
                           const RmsNormBackwardWeightArgs& args);
void RowSums(Device& device, const RowSumsArgs& args);
void RowSumsBackward(Device& device, const RowSumsBackwardArgs& args);
void SplitNorm(Device& device, const SplitNormArgs& args);
void SplitNormBackwardInput(Device& device,
                            const SplitNormBackwardInputArgs& args);
void Gelu(Device& device, const GeluArgs& args);
void GeluBackward(Device& device, const GeluBackwardArgs& args);
void SwiGlu(Device& device, const SwiGluArgs& args);
void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args);
void Route(Device& device, const RouteArgs& args);
void RouteBackward(Device& device, const RouteBackwardArgs& args);
void RouteLoad(Device& device, const RouteLoadArgs& args);
void RouterLoss(Device& device, const RouterLossArgs& args);
void RouterLossBackward(Device& device, const RouterLossBackwardArgs& args);
void Capacity(Device& device, const CapacityArgs& args);
void CapacityBackward(Device& device, const CapacityBackwardArgs& args);
void SortChoices(Device& device, const SortChoicesArgs& args);
void GatherRows(Device& device, const GatherRowsArgs& args);
void SumRows(Device& device, const SumRowsArgs& args);
void Regroup(Device& device, const RegroupArgs& args);
void Ungroup(Device& device, const RegroupArgs& args);
void OwnOffsets(Device& device, const OwnOffsetsArgs& args);
void GroupedMatMul(Device& device, const GroupedMatMulArgs& args);
void GroupedWeightGradient(Device& device,
                           const GroupedWeightGradientArgs& args);
void JoinHeads(Device& device, const JoinHeadsArgs& args);
void JoinHeadsBackward(Device& device, const JoinHeadsArgs& args);
void Rotary(Device& device, const RotaryArgs& args);
void Attention(Device& device, const AttentionArgs& args);
void AttentionBackward(Device& device, const AttentionBackwardArgs& args);
void CausalSoftmax(Device& device, const CausalSoftmaxArgs& args);
void CausalSoftmaxBackward(Device& device,
                           const CausalSoftmaxBackwardArgs& args);
void CrossEntropy(Device& device, const CrossEntropyArgs& args);
void CrossEntropyParts(Device& device, const CrossEntropyPartsArgs& args);
void AdamW(Device& device, const AdamWArgs& args);
void Lion(Device& device, const LionArgs& args);
void Adafactor(Device& device, const AdafactorArgs& args);
void Sgd(Device& device, const SgdArgs& args);
void LoadStep(Device& device, const LoadStepArgs& args);
void ToInt4(Device& device, const Int4Args& args);
void FromInt4(Device& device, const Int4Args& args);
void Average(Device& device, const AverageArgs& args);
void SumOfSquares(Device& device, const SumOfSquaresArgs& args);
void Add(Device& device, const AddArgs& args);
void Scale(Device& device, const ScaleArgs& args);
void Fill(Device& device, const FillArgs& args);
void Copy(Device& device, const CopyArgs& args);
void FillNormal(Device& device, const FillNormalArgs& args);

}  // namespace troupe::cpu

#endif  // TROUPE_OPS_CPU_KERNELS_H_
