#include "ops/cpu/simd/table.h"

#include "ops/cpu/simd/loops.h"

#define TROUPE_STRING_INNER(x) #x
#define TROUPE_STRING(x) TROUPE_STRING_INNER(x)

namespace troupe {
namespace TROUPE_SIMD {

extern const SimdTable kTable = {
    .name = TROUPE_STRING(TROUPE_SIMD),
    .gelu = Gelu,
    .gelu_backward = GeluBackward,
    .bias = Bias,
    .column_sum = ColumnSum,
    .layer_norm = LayerNorm,
    .layer_norm_backward_input = LayerNormBackwardInput,
    .layer_norm_backward_weight = LayerNormBackwardWeight,
    .dropout = Dropout,
    .softmax_sum = SoftmaxSum,
    .exp_scaled = ExpScaled,
    .adamw = AdamW,
    .sgd = Sgd,
    .sum_of_squares = SumOfSquares,
    .add = Add,
    .scale = Scale,
    .fill = Fill,
    .attention = Attention,
    .attention_backward = AttentionBackward,
    .attention_scratch = AttentionScratch,
    .padded_head_dim = PaddedHeadDim,
};

}  // namespace TROUPE_SIMD
}  // namespace troupe
