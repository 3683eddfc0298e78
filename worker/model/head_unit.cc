#include "worker/model/head_unit.h"

#include <utility>

#include "proto/base/status.h"
#include "proto/plan/model.h"
#include "worker/model/lm_head.h"
#include "worker/model/tensor_place.h"
#include "worker/model/unit_bytes.h"

namespace troupe {
namespace {

struct Places {
  Places(const ModelSpec& model, const MicroBatchShape& shape,
         Normalization::Kind norm_kind);

  TensorPlace activation;  // the input and its gradient, [b, t, width]
  BufferLayout stash_layout;
  TensorPlace mean;           // [b t]; of a LayerNorm
  TensorPlace rstd;           // [b t]
  TensorPlace norm;           // [b, t, width]
  TensorPlace padded_logits;  // [b t, vocab up to the next cache line]
  BufferLayout weight_stash_layout;
  TensorPlace d_norm;  // [b, t, width]
};

Places::Places(const ModelSpec& model, const MicroBatchShape& shape,
               Normalization::Kind norm_kind) {
  const int64_t b = shape.sequences;
  const int64_t t = shape.sequence_length;
  const DType dtype = ComputeDType(shape.dtype);
  activation = BufferLayout().Add({b, t, model.hidden_size()}, dtype);
  if (norm_kind == Normalization::Kind::kLayerNorm) {
    mean = stash_layout.Add({b * t});
  }
  rstd = stash_layout.Add({b * t});
  norm = stash_layout.Add({b, t, model.hidden_size()}, dtype);
  padded_logits =
      stash_layout.Add({b * t, FlatAligned(model.vocab_size())}, dtype);
  d_norm = weight_stash_layout.Add({b, t, model.hidden_size()}, dtype);
}

struct Layers {
  Normalization norm;
  LmHead lm_head;
};

class HeadUnit final : public ModelUnit {
 public:
  HeadUnit(const UnitOptions& options, Places places, Layers layers)
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
                          .mean = Mean(buffers),
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
         .mean = Mean(buffers),
         .rstd = places_.rstd.In(buffers.stash),
         .dx = places_.activation.In(buffers.input_gradient)});
  }

  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override {
    layers_.lm_head.BackwardWeight(
        device,
        tied() ? buffers.tied_parameter_gradients : buffers.parameter_gradients,
        {.x = places_.norm.In(buffers.stash),
         .d_logits = Logits(buffers),
         .from_zero = context.gradients_are_zero});
    layers_.norm.BackwardWeight(device, buffers.parameter_gradients,
                                {.dy = places_.d_norm.In(buffers.weight_stash),
                                 .s = places_.activation.In(buffers.input),
                                 .mean = Mean(buffers),
                                 .rstd = places_.rstd.In(buffers.stash)});
  }

  int64_t CacheBytes(int64_t) const override { return 0; }
  int64_t DecodeWorkspaceBytes() const override {
    BufferLayout layout;
    layout.Add({1, options_.model.hidden_size()}, dtype());
    return layout.bytes();
  }

  void Decode(Device& device, int64_t,
              const DecodeBuffers& buffers) const override {
    const int64_t width = options_.model.hidden_size();
    const Tensor input(buffers.input, dtype(), {buffers.count, width});
    const Tensor norm(buffers.workspace, dtype(), {1, width});
    const Tensor logits(buffers.output, dtype(),
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
  DType dtype() const { return places_.activation.dtype; }

  Tensor Mean(const UnitBuffers& buffers) const {
    return places_.mean.dims.empty() ? Tensor()
                                     : places_.mean.In(buffers.stash);
  }

  Tensor Logits(const UnitBuffers& buffers) const {
    return places_.padded_logits.In(buffers.stash)
        .Slice(1, 0, options_.model.vocab_size());
  }

  const UnitOptions options_;
  const Places places_;
  const Layers layers_;
};

// The projection's weight: in this unit's flat buffer, or in the tied one's.
absl::StatusOr<ParameterPlace> FindProjection(const UnitOptions& options) {
  const std::vector<int64_t> dims = {options.model.vocab_size(),
                                     options.model.hidden_size()};
  if (options.unit.tied_size() == 0) {
    return FindParameter(options.unit, "lm_head.weight", dims);
  }
  return FindParameter(options.tied_unit, options.unit.tied(0).parameter(),
                       dims);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewHeadUnit(
    const UnitOptions& options, const Normalization::Options& norm_options) {
  Places places(options.model, options.build.shape, norm_options.kind);
  RETURN_IF_ERROR(CheckUnitBytes(
      options.unit, {.stash = places.stash_layout.bytes(),
                     .weight_stash = places.weight_stash_layout.bytes()}));
  ASSIGN_OR_RETURN(ParameterPlace projection, FindProjection(options));
  ASSIGN_OR_RETURN(Normalization norm,
                   Normalization::Create(options.unit, norm_options));
  return std::make_unique<HeadUnit>(
      options, std::move(places),
      Layers{std::move(norm), LmHead(std::move(projection))});
}

}  // namespace troupe
