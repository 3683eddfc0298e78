// Final normalisation, vocabulary projection, loss.
#include <utility>

#include "proto/base/status.h"
#include "worker/model/gpt2_unit.h"
#include "worker/model/layer_normalization.h"
#include "worker/model/lm_head.h"
#include "worker/model/tensor_place.h"

namespace troupe {
namespace {

struct Places {
  Places(const ModelSpec& model, const MicroBatchShape& shape);

  TensorPlace activation;  // the input and its gradient, [b, t, width]
  BufferLayout stash_layout;
  TensorPlace mean;           // [b t]
  TensorPlace rstd;           // [b t]
  TensorPlace norm;           // [b, t, width]
  TensorPlace padded_logits;  // [b t, vocab up to the next cache line]
  BufferLayout weight_stash_layout;
  TensorPlace d_norm;  // [b, t, width]
};

Places::Places(const ModelSpec& model, const MicroBatchShape& shape) {
  const int64_t b = shape.sequences;
  const int64_t t = shape.sequence_length;
  const int64_t padded_vocab = (model.vocab_size() + kFlatAlignment - 1) /
                               kFlatAlignment * kFlatAlignment;
  activation = BufferLayout().Add({b, t, model.hidden_size()});
  mean = stash_layout.Add({b * t});
  rstd = stash_layout.Add({b * t});
  norm = stash_layout.Add({b, t, model.hidden_size()});
  padded_logits = stash_layout.Add({b * t, padded_vocab});
  d_norm = weight_stash_layout.Add({b, t, model.hidden_size()});
}

struct Layers {
  LayerNormalization norm;
  LmHead lm_head;
};

class Gpt2Head final : public ModelUnit {
 public:
  Gpt2Head(const UnitOptions& options, Places places, Layers layers)
      : options_(options),
        places_(std::move(places)),
        layers_(std::move(layers)) {}

  const Unit& spec() const override { return options_.unit; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    const Tensor norm = places_.norm.In(buffers.stash);
    const Tensor logits = Logits(buffers);
    layers_.norm.Forward(device, buffers.parameters,
                         {.x = places_.activation.In(buffers.input),
                          .y = norm,
                          .mean = places_.mean.In(buffers.stash),
                          .rstd = places_.rstd.In(buffers.stash)});
    layers_.lm_head.Project(
        device, tied() ? buffers.tied_parameters : buffers.parameters,
        {.x = norm, .logits = logits});
    layers_.lm_head.Loss(device, {.logits = logits,
                                  .targets = buffers.batch + logits.rows(),
                                  .gradient = context.training,
                                  .gradient_scale = context.gradient_scale,
                                  .loss_sum = buffers.scalars,
                                  .count = buffers.scalars + 1});
  }

  void BackwardInput(Device& device, const MicroBatchContext&,
                     const UnitBuffers& buffers) const override {
    const Tensor d_norm = places_.d_norm.In(buffers.weight_stash);
    layers_.lm_head.BackwardInput(
        device, tied() ? buffers.tied_parameters : buffers.parameters,
        {.d_logits = Logits(buffers), .dx = d_norm});
    layers_.norm.BackwardInput(
        device, buffers.parameters,
        {.dy = d_norm,
         .s = places_.activation.In(buffers.input),
         .mean = places_.mean.In(buffers.stash),
         .rstd = places_.rstd.In(buffers.stash),
         .dx = places_.activation.In(buffers.input_gradient)});
  }

  void BackwardWeight(Device& device, const MicroBatchContext&,
                      const UnitBuffers& buffers) const override {
    layers_.lm_head.BackwardWeight(
        device,
        tied() ? buffers.tied_parameter_gradients : buffers.parameter_gradients,
        {.x = places_.norm.In(buffers.stash), .d_logits = Logits(buffers)});
    layers_.norm.BackwardWeight(device, buffers.parameter_gradients,
                                {.dy = places_.d_norm.In(buffers.weight_stash),
                                 .s = places_.activation.In(buffers.input),
                                 .mean = places_.mean.In(buffers.stash),
                                 .rstd = places_.rstd.In(buffers.stash)});
  }

  int64_t CacheBytes(int64_t) const override { return 0; }
  int64_t DecodeWorkspaceBytes() const override {
    BufferLayout layout;
    layout.Add({1, options_.model.hidden_size()});
    return layout.bytes();
  }

  void Decode(Device& device, int64_t,
              const DecodeBuffers& buffers) const override {
    const int64_t width = options_.model.hidden_size();
    const Tensor input(buffers.input, DType::kF32, {buffers.count, width});
    const Tensor norm(buffers.workspace, DType::kF32, {1, width});
    const Tensor logits(buffers.output, DType::kF32,
                        {1, options_.model.vocab_size()});
    layers_.norm.Forward(
        device, buffers.parameters,
        {.x = input.Slice(0, buffers.count - 1, buffers.count), .y = norm});
    layers_.lm_head.Project(
        device, tied() ? buffers.tied_parameters : buffers.parameters,
        {.x = norm, .logits = logits});
  }

 private:
  bool tied() const { return options_.unit.tied_size() > 0; }

  Tensor Logits(const UnitBuffers& buffers) const {
    return places_.padded_logits.In(buffers.stash)
        .Slice(1, 0, options_.model.vocab_size());
  }

  const UnitOptions options_;
  const Places places_;
  const Layers layers_;
};

// The projection's weight: in this unit's flat buffer, or in the tied one's.
absl::StatusOr<TensorPlace> FindProjection(const UnitOptions& options) {
  const std::vector<int64_t> dims = {options.model.vocab_size(),
                                     options.model.hidden_size()};
  if (options.unit.tied_size() == 0) {
    return FindParameter(options.unit, "lm_head.weight", dims);
  }
  return FindParameter(options.tied_unit, options.unit.tied(0).parameter(),
                       dims);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Head(
    const UnitOptions& options) {
  Places places(options.model, options.build.shape);
  RETURN_IF_ERROR(CheckGpt2Bytes(
      options.unit, {.stash = places.stash_layout.bytes(),
                     .weight_stash = places.weight_stash_layout.bytes()}));
  ASSIGN_OR_RETURN(TensorPlace projection, FindProjection(options));
  ASSIGN_OR_RETURN(
      LayerNormalization norm,
      LayerNormalization::Create(
          options.unit, {.prefix = "transformer.ln_f",
                         .width = options.model.hidden_size(),
                         .epsilon = options.model.layer_norm_epsilon()}));
  return std::make_unique<Gpt2Head>(
      options, std::move(places),
      Layers{std::move(norm), LmHead(std::move(projection))});
}

}  // namespace troupe
