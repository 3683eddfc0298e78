// One transformer block, normalisation first:
//
//   r = x + dropout(attention(norm_1(x)));  y = r + dropout(mlp(norm_2(r)))
#include <utility>

#include "ops/dropout.h"
#include "proto/base/status.h"
#include "worker/model/causal_self_attention.h"
#include "worker/model/dropout_masks.h"
#include "worker/model/gpt2_block_places.h"
#include "worker/model/gpt2_unit.h"
#include "worker/model/mlp.h"
#include "worker/model/normalization.h"
#include "worker/model/tensor_place.h"
#include "worker/model/unit_bytes.h"

namespace troupe {
namespace {

struct Layers {
  Normalization norm_1;
  CausalSelfAttention attention;
  Normalization norm_2;
  Mlp mlp;
};

class Gpt2Block final : public ModelUnit {
 public:
  Gpt2Block(const UnitOptions& options, Gpt2BlockPlaces places, Layers layers)
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
    layout.Add({1, positions, 2 * options_.model.hidden_size()}, dtype());
    return layout.bytes();
  }
  int64_t DecodeWorkspaceBytes() const override {
    return DecodePlaces(kDecodeTokensMax).layout.bytes();
  }
  void Decode(Device& device, int64_t positions,
              const DecodeBuffers& buffers) const override;

 private:
  DropoutMask Mask(const MicroBatchContext& context,
                   Gpt2DropoutSite site) const {
    return HiddenMask(
        options_, Gpt2BlockDropoutSite(options_.unit.layer(), site), context);
  }
  AttentionDropout ProbabilityMask(const MicroBatchContext& context) const {
    return AttentionMask(options_,
                         Gpt2BlockDropoutSite(options_.unit.layer(),
                                              Gpt2DropoutSite::kAttention),
                         context);
  }
  DType dtype() const { return places_.activation.dtype; }
  Gpt2DecodePlaces DecodePlaces(int64_t count) const {
    return Gpt2DecodePlaces(
        options_.model,
        {.sequence_length = count, .dtype = options_.build.shape.dtype});
  }
  // The gradient of x where `gradient` is that of dropout(x): itself, or masked
  // in the workspace.
  Tensor Masked(Device& device, const DropoutMask& mask, const Tensor& gradient,
                const UnitBuffers& buffers) const;

  const UnitOptions options_;
  const Gpt2BlockPlaces places_;
  const Layers layers_;
};

void Gpt2Block::Forward(Device& device, const MicroBatchContext& context,
                        const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  const Tensor input = places_.activation.In(buffers.input);
  const Tensor output = places_.activation.In(buffers.output);
  const Tensor norm_1 = places_.norm_1.In(stash);
  const Tensor residual = places_.residual.In(stash);
  const Tensor norm_2 = places_.norm_2.In(stash);
  layers_.norm_1.Forward(device, buffers.parameters,
                         {.x = input,
                          .y = norm_1,
                          .mean = places_.mean_1.In(stash),
                          .rstd = places_.rstd_1.In(stash)});
  layers_.attention.Forward(device, buffers.parameters,
                            {.x = norm_1,
                             .qkv = places_.qkv.In(stash),
                             .o = places_.attention.In(stash),
                             .logsumexp = places_.logsumexp.In(stash),
                             .y = residual,
                             .dropout = ProbabilityMask(context)});
  layers_.norm_2.Forward(
      device, buffers.parameters,
      {.x = residual,
       .residual = input,
       .sum = residual,
       .dropout = Mask(context, Gpt2DropoutSite::kAfterAttention),
       .y = norm_2,
       .mean = places_.mean_2.In(stash),
       .rstd = places_.rstd_2.In(stash)});
  layers_.mlp.Forward(device, buffers.parameters,
                      {.x = norm_2,
                       .before_gelu = places_.before_gelu.In(stash),
                       .after_gelu = places_.after_gelu.In(stash),
                       .y = output});
  ApplyDropout(device, {.x = output,
                        .residual = residual,
                        .y = output,
                        .mask = Mask(context, Gpt2DropoutSite::kAfterMlp)});
}

Tensor Gpt2Block::Masked(Device& device, const DropoutMask& mask,
                         const Tensor& gradient,
                         const UnitBuffers& buffers) const {
  if (mask.probability == 0) return gradient;
  const Tensor masked = places_.masked.In(buffers.workspace);
  ApplyDropout(device, {.x = gradient, .y = masked, .mask = mask});
  return masked;
}

void Gpt2Block::BackwardInput(Device& device, const MicroBatchContext& context,
                              const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  void* const weight_stash = buffers.weight_stash;
  const Tensor d_output = places_.activation.In(buffers.output_gradient);
  const Tensor d_input = places_.activation.In(buffers.input_gradient);
  const Tensor d_norm_1 = places_.d_norm_1.In(weight_stash);
  const Tensor d_residual = places_.d_residual.In(weight_stash);
  const Tensor d_norm_2 = places_.d_norm_2.In(weight_stash);
  layers_.mlp.BackwardInput(
      device, buffers.parameters,
      {.dy = Masked(device, Mask(context, Gpt2DropoutSite::kAfterMlp), d_output,
                    buffers),
       .before_gelu = places_.before_gelu.In(stash),
       .d_before_gelu = places_.d_before_gelu.In(weight_stash),
       .dx = d_norm_2});
  layers_.norm_2.BackwardInput(device, buffers.parameters,
                               {.dy = d_norm_2,
                                .s = places_.residual.In(stash),
                                .mean = places_.mean_2.In(stash),
                                .rstd = places_.rstd_2.In(stash),
                                .residual_gradient = d_output,
                                .dx = d_residual});
  layers_.attention.BackwardInput(
      device, buffers.parameters,
      {.dy = Masked(device, Mask(context, Gpt2DropoutSite::kAfterAttention),
                    d_residual, buffers),
       .qkv = places_.qkv.In(stash),
       .o = places_.attention.In(stash),
       .logsumexp = places_.logsumexp.In(stash),
       .d_o = d_input,
       .dqkv = places_.d_qkv.In(weight_stash),
       .dx = d_norm_1,
       .dropout = ProbabilityMask(context)});
  layers_.norm_1.BackwardInput(device, buffers.parameters,
                               {.dy = d_norm_1,
                                .s = places_.activation.In(buffers.input),
                                .mean = places_.mean_1.In(stash),
                                .rstd = places_.rstd_1.In(stash),
                                .residual_gradient = d_residual,
                                .dx = d_input});
}

void Gpt2Block::BackwardWeight(Device& device, const MicroBatchContext& context,
                               const UnitBuffers& buffers) const {
  void* const stash = buffers.stash;
  void* const weight_stash = buffers.weight_stash;
  void* const gradients = buffers.parameter_gradients;
  const Tensor d_output = places_.activation.In(buffers.output_gradient);
  const Tensor d_residual = places_.d_residual.In(weight_stash);
  layers_.mlp.BackwardWeight(
      device, gradients,
      {.x = places_.norm_2.In(stash),
       .d_before_gelu = places_.d_before_gelu.In(weight_stash),
       .after_gelu = places_.after_gelu.In(stash),
       .dy = Masked(device, Mask(context, Gpt2DropoutSite::kAfterMlp), d_output,
                    buffers),
       .from_zero = context.gradients_are_zero});
  layers_.norm_2.BackwardWeight(device, gradients,
                                {.dy = places_.d_norm_2.In(weight_stash),
                                 .s = places_.residual.In(stash),
                                 .mean = places_.mean_2.In(stash),
                                 .rstd = places_.rstd_2.In(stash)});
  layers_.attention.BackwardWeight(
      device, gradients,
      {.x = places_.norm_1.In(stash),
       .dqkv = places_.d_qkv.In(weight_stash),
       .o = places_.attention.In(stash),
       .dy = Masked(device, Mask(context, Gpt2DropoutSite::kAfterAttention),
                    d_residual, buffers),
       .from_zero = context.gradients_are_zero});
  layers_.norm_1.BackwardWeight(device, gradients,
                                {.dy = places_.d_norm_1.In(weight_stash),
                                 .s = places_.activation.In(buffers.input),
                                 .mean = places_.mean_1.In(stash),
                                 .rstd = places_.rstd_1.In(stash)});
}

void Gpt2Block::Decode(Device& device, int64_t positions,
                       const DecodeBuffers& buffers) const {
  const int64_t width = options_.model.hidden_size();
  const Gpt2DecodePlaces places = DecodePlaces(buffers.count);
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
       .cache = Tensor(buffers.cache, dtype(), {1, positions, 2 * width}),
       .position = buffers.position});
  layers_.norm_2.Forward(
      device, buffers.parameters,
      {.x = residual, .residual = input, .sum = residual, .y = norm});
  layers_.mlp.Forward(device, buffers.parameters,
                      {.x = norm,
                       .after_gelu = places.after_gelu.In(buffers.workspace),
                       .y = output});
  ApplyDropout(device, {.x = output, .residual = residual, .y = output});
}

absl::StatusOr<Layers> CreateLayers(const UnitOptions& options) {
  const ModelSpec& model = options.model;
  const std::string prefix =
      absl::StrCat("transformer.h.", options.unit.layer(), ".");
  const auto norm = [&](const char* name) {
    return Normalization::Create(options.unit,
                                 {.kind = Normalization::Kind::kLayerNorm,
                                  .prefix = prefix + name,
                                  .width = model.hidden_size(),
                                  .epsilon = model.layer_norm_epsilon()});
  };
  ASSIGN_OR_RETURN(Normalization norm_1, norm("ln_1"));
  ASSIGN_OR_RETURN(
      CausalSelfAttention attention,
      CausalSelfAttention::Create(
          options.unit,
          {.qkv = {prefix + "attn.c_attn"},
           .out = prefix + "attn.c_proj",
           .width = model.hidden_size(),
           .heads = model.num_attention_heads(),
           .kv_heads = model.num_attention_heads(),
           .head_dim = model.hidden_size() / model.num_attention_heads()}));
  ASSIGN_OR_RETURN(Normalization norm_2, norm("ln_2"));
  ASSIGN_OR_RETURN(
      Mlp mlp,
      Mlp::Create(options.unit, {.prefix = prefix + "mlp",
                                 .width = model.hidden_size(),
                                 .intermediate = model.intermediate_size()}));
  return Layers{std::move(norm_1), std::move(attention), std::move(norm_2),
                std::move(mlp)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Block(
    const UnitOptions& options) {
  Gpt2BlockPlaces places(options.model, options.build.shape);
  RETURN_IF_ERROR(CheckUnitBytes(
      options.unit, {.activation = places.activation_layout.bytes(),
                     .stash = places.stash_layout.bytes(),
                     .weight_stash = places.weight_stash_layout.bytes(),
                     .workspace = places.workspace_layout.bytes()}));
  ASSIGN_OR_RETURN(Layers layers, CreateLayers(options));
  return std::make_unique<Gpt2Block>(options, std::move(places),
                                     std::move(layers));
}

}  // namespace troupe
