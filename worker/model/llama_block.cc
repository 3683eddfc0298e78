// One transformer block, normalisation first:
//
//   r = x + attention(norm_1(x));  y = r + mlp(norm_2(r))
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/dropout.h"
#include "proto/base/status.h"
#include "proto/plan/rope.h"
#include "worker/model/causal_self_attention.h"
#include "worker/model/dropout_masks.h"
#include "worker/model/llama_block_places.h"
#include "worker/model/llama_unit.h"
#include "worker/model/normalization.h"
#include "worker/model/swiglu_mlp.h"
#include "worker/model/tensor_place.h"
#include "worker/model/unit_bytes.h"

namespace troupe {
namespace {

struct Layers {
  Normalization norm_1;
  CausalSelfAttention attention;
  Normalization norm_2;
  SwiGluMlp mlp;
};

class LlamaBlock final : public ModelUnit {
 public:
  LlamaBlock(const UnitOptions& options, LlamaBlockPlaces places, Layers layers)
      : options_(options),
        places_(std::move(places)),
        layers_(std::move(layers)) {}

  const Unit& spec() const override { return options_.unit; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override;
  void BackwardInput(Device& device, const MicroBatchContext& context,
                     const UnitBuffers& buffers) const override;
  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override;

  int64_t CacheBytes(int64_t positions) const override {
    BufferLayout layout;
    layout.Add({1, positions, 2 * LlamaKeyWidth(options_.model)}, dtype());
    return layout.bytes();
  }
  int64_t DecodeWorkspaceBytes() const override {
    return DecodePlaces(kDecodeTokensMax).layout.bytes();
  }
  void Decode(Device& device, int64_t positions,
              const DecodeBuffers& buffers) const override;

 private:
  AttentionDropout Mask(const MicroBatchContext& context) const {
    return AttentionMask(options_, static_cast<uint32_t>(options_.unit.layer()),
                         context);
  }
  DType dtype() const { return places_.activation.dtype; }
  LlamaDecodePlaces DecodePlaces(int64_t count) const {
    return LlamaDecodePlaces(
        options_.model,
        {.sequence_length = count, .dtype = options_.build.shape.dtype});
  }

  const UnitOptions options_;
  const LlamaBlockPlaces places_;
  const Layers layers_;
};

void LlamaBlock::Forward(Device& device, const MicroBatchContext& context,
                         const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  const Tensor input = places_.activation.In(buffers.input);
  const Tensor output = places_.activation.In(buffers.output);
  const Tensor norm_1 = places_.norm_1.In(stash);
  const Tensor residual = places_.residual.In(stash);
  const Tensor norm_2 = places_.norm_2.In(stash);
  layers_.norm_1.Forward(
      device, buffers.parameters,
      {.x = input, .y = norm_1, .rstd = places_.rstd_1.In(stash)});
  layers_.attention.Forward(device, buffers.parameters,
                            {.x = norm_1,
                             .qkv = places_.qkv.In(stash),
                             .o = places_.attention.In(stash),
                             .logsumexp = places_.logsumexp.In(stash),
                             .y = residual,
                             .dropout = Mask(context)});
  layers_.norm_2.Forward(device, buffers.parameters,
                         {.x = residual,
                          .residual = input,
                          .sum = residual,
                          .y = norm_2,
                          .rstd = places_.rstd_2.In(stash)});
  layers_.mlp.Forward(device, buffers.parameters,
                      {.x = norm_2,
                       .gate_up = places_.gate_up.In(stash),
                       .gated = places_.gated.In(stash),
                       .y = output});
  ApplyDropout(device, {.x = output, .residual = residual, .y = output});
}

void LlamaBlock::BackwardInput(Device& device, const MicroBatchContext& context,
                               const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  void* const weight_stash = buffers.weight_stash;
  const Tensor d_output = places_.activation.In(buffers.output_gradient);
  const Tensor d_norm_1 = places_.d_norm_1.In(weight_stash);
  const Tensor d_residual = places_.d_residual.In(weight_stash);
  const Tensor d_norm_2 = places_.d_norm_2.In(weight_stash);
  layers_.mlp.BackwardInput(device, buffers.parameters,
                            {.dy = d_output,
                             .gate_up = places_.gate_up.In(stash),
                             .d_gated = places_.d_gated.In(buffers.workspace),
                             .d_gate_up = places_.d_gate_up.In(weight_stash),
                             .dx = d_norm_2});
  layers_.norm_2.BackwardInput(device, buffers.parameters,
                               {.dy = d_norm_2,
                                .s = places_.residual.In(stash),
                                .rstd = places_.rstd_2.In(stash),
                                .residual_gradient = d_output,
                                .dx = d_residual});
  layers_.attention.BackwardInput(
      device, buffers.parameters,
      {.dy = d_residual,
       .qkv = places_.qkv.In(stash),
       .o = places_.attention.In(stash),
       .logsumexp = places_.logsumexp.In(stash),
       .d_o = places_.d_attention.In(buffers.workspace),
       .dqkv = places_.d_qkv.In(weight_stash),
       .dx = d_norm_1,
       .dropout = Mask(context)});
  layers_.norm_1.BackwardInput(
      device, buffers.parameters,
      {.dy = d_norm_1,
       .s = places_.activation.In(buffers.input),
       .rstd = places_.rstd_1.In(stash),
       .residual_gradient = d_residual,
       .dx = places_.activation.In(buffers.input_gradient)});
}

void LlamaBlock::BackwardWeight(Device& device,
                                const MicroBatchContext& context,
                                const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  void* const weight_stash = buffers.weight_stash;
  void* const gradients = buffers.parameter_gradients;
  layers_.mlp.BackwardWeight(
      device, gradients,
      {.x = places_.norm_2.In(stash),
       .d_gate_up = places_.d_gate_up.In(weight_stash),
       .gated = places_.gated.In(stash),
       .dy = places_.activation.In(buffers.output_gradient),
       .from_zero = context.gradients_are_zero});
  layers_.norm_2.BackwardWeight(device, gradients,
                                {.dy = places_.d_norm_2.In(weight_stash),
                                 .s = places_.residual.In(stash),
                                 .rstd = places_.rstd_2.In(stash)});
  layers_.attention.BackwardWeight(device, gradients,
                                   {.x = places_.norm_1.In(stash),
                                    .dqkv = places_.d_qkv.In(weight_stash),
                                    .o = places_.attention.In(stash),
                                    .dy = places_.d_residual.In(weight_stash),
                                    .from_zero = context.gradients_are_zero});
  layers_.norm_1.BackwardWeight(device, gradients,
                                {.dy = places_.d_norm_1.In(weight_stash),
                                 .s = places_.activation.In(buffers.input),
                                 .rstd = places_.rstd_1.In(stash)});
}

void LlamaBlock::Decode(Device& device, int64_t positions,
                        const DecodeBuffers& buffers) const {
  const int64_t width = options_.model.hidden_size();
  const LlamaDecodePlaces places = DecodePlaces(buffers.count);
  const Tensor input(buffers.input, dtype(), {1, buffers.count, width});
  const Tensor output(buffers.output, dtype(), {1, buffers.count, width});
  const Tensor norm = places.norm.In(buffers.workspace);
  const Tensor residual = places.residual.In(buffers.workspace);
  layers_.norm_1.Forward(device, buffers.parameters, {.x = input, .y = norm});
  layers_.attention.Decode(
      device, buffers.parameters,
      {.x = norm,
       .qkv = places.qkv.In(buffers.workspace),
       .o = places.attention.In(buffers.workspace),
       .y = residual,
       .cache = Tensor(buffers.cache, dtype(),
                       {1, positions, 2 * LlamaKeyWidth(options_.model)}),
       .position = buffers.position});
  layers_.norm_2.Forward(
      device, buffers.parameters,
      {.x = residual, .residual = input, .sum = residual, .y = norm});
  layers_.mlp.Forward(device, buffers.parameters,
                      {.x = norm,
                       .gate_up = places.gate_up.In(buffers.workspace),
                       .gated = places.gated.In(buffers.workspace),
                       .y = output});
  ApplyDropout(device, {.x = output, .residual = residual, .y = output});
}

CausalSelfAttention::Options AttentionOptions(const UnitOptions& options,
                                              const std::string& prefix) {
  const ModelSpec& model = options.model;
  return {
      .qkv = {prefix + "q_proj", prefix + "k_proj", prefix + "v_proj"},
      .out = prefix + "o_proj",
      .layout = WeightLayout::kOutIn,
      .bias = model.attention_bias(),
      .width = model.hidden_size(),
      .heads = model.num_attention_heads(),
      .kv_heads = model.num_key_value_heads(),
      .head_dim = model.head_dim(),
      .rope = RopeFrequencies(model, options.build.shape.sequence_length),
      .decode_rope = RopeFrequencies(model, model.max_position_embeddings())};
}

absl::StatusOr<Layers> CreateLayers(const UnitOptions& options) {
  const ModelSpec& model = options.model;
  const std::string prefix =
      absl::StrCat("model.layers.", options.unit.layer(), ".");
  const auto norm = [&](const char* name) {
    return Normalization::Create(options.unit,
                                 {.kind = Normalization::Kind::kRmsNorm,
                                  .prefix = prefix + name,
                                  .width = model.hidden_size(),
                                  .epsilon = model.rms_norm_eps()});
  };
  ASSIGN_OR_RETURN(Normalization norm_1, norm("input_layernorm"));
  ASSIGN_OR_RETURN(
      CausalSelfAttention attention,
      CausalSelfAttention::Create(
          options.unit, AttentionOptions(options, prefix + "self_attn.")));
  ASSIGN_OR_RETURN(Normalization norm_2, norm("post_attention_layernorm"));
  ASSIGN_OR_RETURN(SwiGluMlp mlp,
                   SwiGluMlp::Create(options.unit,
                                     {.prefix = prefix + "mlp",
                                      .width = model.hidden_size(),
                                      .intermediate = model.intermediate_size(),
                                      .bias = model.mlp_bias()}));
  return Layers{std::move(norm_1), std::move(attention), std::move(norm_2),
                std::move(mlp)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewLlamaBlock(
    const UnitOptions& options) {
  LlamaBlockPlaces places(options.model, options.build.shape);
  RETURN_IF_ERROR(CheckUnitBytes(
      options.unit, {.activation = places.activation_layout.bytes(),
                     .stash = places.stash_layout.bytes(),
                     .weight_stash = places.weight_stash_layout.bytes(),
                     .workspace = places.workspace_bytes}));
  ASSIGN_OR_RETURN(Layers layers, CreateLayers(options));
  return std::make_unique<LlamaBlock>(options, std::move(places),
                                      std::move(layers));
}

}  // namespace troupe
