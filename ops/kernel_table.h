// What a device must implement: one function for each op. The functions of
// ops/<name>.h check shapes and dtypes, once for all devices, and call the
// device's kernel; a kernel may therefore trust its arguments but for dtypes
// that the device does not have.
//
// To add an op: its header and checks in ops/, its kernel in ops/cpu and
// ops/cuda under the same file name, a row here and in each device's table.
#ifndef TROUPE_OPS_KERNEL_TABLE_H_
#define TROUPE_OPS_KERNEL_TABLE_H_

namespace troupe {

class Device;
struct AdafactorArgs;
struct AdamWArgs;
struct AddArgs;
struct ApplyDropoutArgs;
struct AttentionArgs;
struct AttentionBackwardArgs;
struct AverageArgs;
struct BiasGradientArgs;
struct CapacityArgs;
struct CapacityBackwardArgs;
struct CausalSoftmaxArgs;
struct CausalSoftmaxBackwardArgs;
struct CopyArgs;
struct CrossEntropyArgs;
struct CrossEntropyPartsArgs;
struct EmbeddingArgs;
struct EmbeddingBackwardArgs;
struct FillArgs;
struct FillNormalArgs;
struct GeluArgs;
struct GeluBackwardArgs;
struct GatherRowsArgs;
struct GroupedMatMulArgs;
struct GroupedWeightGradientArgs;
struct Int4Args;
struct JoinHeadsArgs;
struct LayerNormArgs;
struct LayerNormBackwardInputArgs;
struct LayerNormBackwardWeightArgs;
struct LionArgs;
struct LoadStepArgs;
struct MatMulArgs;
struct RowSumsArgs;
struct RowSumsBackwardArgs;
struct OwnOffsetsArgs;
struct RegroupArgs;
struct RmsNormArgs;
struct RmsNormBackwardInputArgs;
struct RmsNormBackwardWeightArgs;
struct RotaryArgs;
struct RouteArgs;
struct RouteBackwardArgs;
struct RouteLoadArgs;
struct RouterLossArgs;
struct RouterLossBackwardArgs;
struct ScaleArgs;
struct SgdArgs;
struct SortChoicesArgs;
struct SplitNormArgs;
struct SplitNormBackwardInputArgs;
struct SumOfSquaresArgs;
struct SumRowsArgs;
struct SwiGluArgs;
struct SwiGluBackwardArgs;

template <typename Args>
using Kernel = void (*)(Device& device, const Args& args);

struct KernelTable {
  Kernel<MatMulArgs> matmul;
  Kernel<BiasGradientArgs> bias_gradient;
  Kernel<EmbeddingArgs> embedding;
  Kernel<EmbeddingBackwardArgs> embedding_backward;
  Kernel<ApplyDropoutArgs> apply_dropout;
  Kernel<LayerNormArgs> layer_norm;
  Kernel<LayerNormBackwardInputArgs> layer_norm_backward_input;
  Kernel<LayerNormBackwardWeightArgs> layer_norm_backward_weight;
  Kernel<RmsNormArgs> rms_norm;
  Kernel<RmsNormBackwardInputArgs> rms_norm_backward_input;
  Kernel<RmsNormBackwardWeightArgs> rms_norm_backward_weight;
  Kernel<RowSumsArgs> row_sums;
  Kernel<RowSumsBackwardArgs> row_sums_backward;
  Kernel<SplitNormArgs> split_norm;
  Kernel<SplitNormBackwardInputArgs> split_norm_backward_input;
  Kernel<GeluArgs> gelu;
  Kernel<GeluBackwardArgs> gelu_backward;
  Kernel<SwiGluArgs> swiglu;
  Kernel<SwiGluBackwardArgs> swiglu_backward;
  Kernel<RouteArgs> route;
  Kernel<RouteBackwardArgs> route_backward;
  Kernel<RouteLoadArgs> route_load;
  Kernel<RouterLossArgs> router_loss;
  Kernel<RouterLossBackwardArgs> router_loss_backward;
  Kernel<CapacityArgs> capacity;
  Kernel<CapacityBackwardArgs> capacity_backward;
  Kernel<SortChoicesArgs> sort_choices;
  Kernel<GatherRowsArgs> gather_rows;
  Kernel<SumRowsArgs> sum_rows;
  Kernel<RegroupArgs> regroup;
  Kernel<RegroupArgs> ungroup;
  Kernel<OwnOffsetsArgs> own_offsets;
  Kernel<GroupedMatMulArgs> grouped_matmul;
  Kernel<GroupedWeightGradientArgs> grouped_weight_gradient;
  Kernel<JoinHeadsArgs> join_heads;
  Kernel<JoinHeadsArgs> join_heads_backward;
  Kernel<RotaryArgs> rotary;
  Kernel<AttentionArgs> attention;
  Kernel<AttentionBackwardArgs> attention_backward;
  Kernel<CausalSoftmaxArgs> causal_softmax;
  Kernel<CausalSoftmaxBackwardArgs> causal_softmax_backward;
  Kernel<CrossEntropyArgs> cross_entropy;
  Kernel<CrossEntropyPartsArgs> cross_entropy_parts;
  Kernel<AdamWArgs> adamw;
  Kernel<LionArgs> lion;
  Kernel<AdafactorArgs> adafactor;
  Kernel<SgdArgs> sgd;
  Kernel<LoadStepArgs> load_step;
  Kernel<AverageArgs> average;
  Kernel<SumOfSquaresArgs> sum_of_squares;
  Kernel<AddArgs> add;
  Kernel<ScaleArgs> scale;
  Kernel<FillArgs> fill;
  Kernel<CopyArgs> copy;
  Kernel<FillNormalArgs> fill_normal;
  Kernel<Int4Args> to_int4;
  Kernel<Int4Args> from_int4;
};

}  // namespace troupe

#endif  // TROUPE_OPS_KERNEL_TABLE_H_
