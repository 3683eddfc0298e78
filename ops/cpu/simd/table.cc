#include "ops/cpu/simd/table.h"

#include "ops/cpu/simd/block_product.h"
#include "ops/cpu/simd/loops.h"

#define TROUPE_STRING_INNER(x) #x
#define TROUPE_STRING(x) TROUPE_STRING_INNER(x)

namespace troupe {
namespace TROUPE_SIMD {
namespace {

template <typename T>
constexpr ActivationLoops<T> kLoops = {
    .gelu = Gelu,
    .gelu_backward = GeluBackward,
    .gelu_exact = GeluExact,
    .gelu_exact_backward = GeluExactBackward,
    .gelu_of_row = GeluOfRow,
    .gelu_of_row_backward = GeluOfRowBackward,
    .swiglu = SwiGlu,
    .swiglu_backward = SwiGluBackward,
    .bias = Bias,
    .rotate = Rotate,
    .column_sum = ColumnSum,
    .layer_norm = LayerNorm,
    .layer_norm_backward_input = LayerNormBackwardInput,
    .layer_norm_backward_weight = LayerNormBackwardWeight,
    .rms_norm = RmsNorm,
    .rms_norm_backward_input = RmsNormBackwardInput,
    .rms_norm_backward_weight = RmsNormBackwardWeight,
    .row_sums = RowSums,
    .row_sums_backward = RowSumsBackward,
    .split_norm = SplitNorm,
    .split_norm_backward_input = SplitNormBackwardInput,
    .dropout = Dropout,
    .softmax_sum = SoftmaxSum,
    .exp_scaled = ExpScaled,
    .adamw = AdamW,
    .lion = Lion,
    .sgd = Sgd,
    .adamw_of_own = AdamW,
    .lion_of_own = Lion,
    .sgd_of_own = Sgd,
    .sum_of_squares = SumOfSquares,
    .add = Add,
    .add_to_own = Add,
    .add_f32 = Add,
    .fill = Fill,
    .scale = Scale,
    .attention = Attention,
    .attention_backward = AttentionBackward,
    .from_f32 = Cast,
    .to_f32 = Cast,
    .pack_rows = PackProductRows,
    .pack_columns = PackProductColumns,
    .store_sums = StoreSums,
    .store_sums_f32 = StoreSums,
};

}  // namespace

extern const SimdTable kTable = {
    .name = TROUPE_STRING(TROUPE_SIMD),
    .f32 = kLoops<float>,
    .bf16 = kLoops<uint16_t>,
    .fp16 = kLoops<Fp16>,
    .attention_scratch = AttentionScratch,
    .padded_head_dim = PaddedHeadDim,
    .product_rows = kTileRows,
    .product_columns = kTileVecs * kLanes,
    .multiply_packed = MultiplyPacked,
};

}  // namespace TROUPE_SIMD
}  // namespace troupe
