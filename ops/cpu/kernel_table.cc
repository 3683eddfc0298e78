#include "ops/kernel_table.h"

#include "ops/cpu/kernels.h"

namespace troupe::cpu {

const KernelTable kKernels = {
    .matmul = MatMul,
    .bias_gradient = BiasGradient,
    .embedding = Embedding,
    .embedding_backward = EmbeddingBackward,
    .apply_dropout = ApplyDropout,
    .layer_norm = LayerNorm,
    .layer_norm_backward_input = LayerNormBackwardInput,
    .layer_norm_backward_weight = LayerNormBackwardWeight,
    .rms_norm = RmsNorm,
    .rms_norm_backward_input = RmsNormBackwardInput,
    .rms_norm_backward_weight = RmsNormBackwardWeight,
    .moments = Moments,
    .moments_backward = MomentsBackward,
    .split_norm = SplitNorm,
    .split_norm_backward_input = SplitNormBackwardInput,
    .gelu = Gelu,
    .gelu_backward = GeluBackward,
    .swiglu = SwiGlu,
    .swiglu_backward = SwiGluBackward,
    .route = Route,
    .route_backward = RouteBackward,
    .route_load = RouteLoad,
    .sort_choices = SortChoices,
    .gather_rows = GatherRows,
    .sum_rows = SumRows,
    .grouped_matmul = GroupedMatMul,
    .grouped_weight_gradient = GroupedWeightGradient,
    .rotary = Rotary,
    .attention = Attention,
    .attention_backward = AttentionBackward,
    .causal_softmax = CausalSoftmax,
    .causal_softmax_backward = CausalSoftmaxBackward,
    .cross_entropy = CrossEntropy,
    .cross_entropy_parts = CrossEntropyParts,
    .adamw = AdamW,
    .sgd = Sgd,
    .sum_of_squares = SumOfSquares,
    .add = Add,
    .scale = Scale,
    .fill = Fill,
    .copy = Copy,
    .fill_normal = FillNormal,
};

}  // namespace troupe::cpu
