// Token and position embedding with dropout behind it.
#include <utility>

#include "ops/dropout.h"
#include "ops/embedding.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/model/gpt2_unit.h"
#include "worker/model/tensor_place.h"

namespace troupe {
namespace {

class Gpt2Embedding final : public ModelUnit {
 public:
  struct Places {
    TensorPlace wte;     // [vocab, width]
    TensorPlace wpe;     // [positions, width]
    TensorPlace output;  // [sequences, time, width]
    TensorPlace d_sum;   // workspace, of the same shape
  };
  Gpt2Embedding(const UnitOptions& options, Places places)
      : options_(options), places_(std::move(places)) {}

  const Unit& spec() const override { return options_.unit; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    const Tensor output = places_.output.In(buffers.output);
    Embedding(device, {.tokens = Tokens(buffers),
                       .wte = places_.wte.In(buffers.parameters),
                       .wpe = places_.wpe.In(buffers.parameters),
                       .y = output});
    const DropoutMask mask = Mask(context);
    if (mask.probability > 0) {
      ApplyDropout(device, {.x = output, .y = output, .mask = mask});
    }
  }

  void BackwardInput(Device&, const MicroBatchContext&,
                     const UnitBuffers&) const override {
    CHECK(false) << "tokens have no gradient";
  }

  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override {
    Tensor d_sum = places_.output.In(buffers.output_gradient);
    const DropoutMask mask = Mask(context);
    if (mask.probability > 0) {
      const Tensor masked = places_.d_sum.In(buffers.workspace);
      ApplyDropout(device, {.x = d_sum, .y = masked, .mask = mask});
      d_sum = masked;
    }
    EmbeddingBackward(device,
                      {.tokens = Tokens(buffers),
                       .dy = d_sum,
                       .dwte = places_.wte.In(buffers.parameter_gradients),
                       .dwpe = places_.wpe.In(buffers.parameter_gradients)});
  }

  int64_t CacheBytes(int64_t) const override { return 0; }
  int64_t DecodeWorkspaceBytes() const override { return 0; }

  void Decode(Device& device, int64_t,
              const DecodeBuffers& buffers) const override {
    Embedding(device,
              {.tokens = Tensor(const_cast<int32_t*>(buffers.tokens),
                                DType::kI32, {1, buffers.count}),
               .wte = places_.wte.In(buffers.parameters),
               .wpe = places_.wpe.In(buffers.parameters),
               .y = Tensor(buffers.output, DType::kF32,
                           {1, buffers.count, options_.model.hidden_size()}),
               .first_position = buffers.position});
  }

 private:
  Tensor Tokens(const UnitBuffers& buffers) const {
    const MicroBatchShape& shape = options_.build.shape;
    return Tensor(const_cast<int32_t*>(buffers.batch), DType::kI32,
                  {shape.sequences, shape.sequence_length});
  }
  DropoutMask Mask(const MicroBatchContext& context) const {
    return Gpt2Mask(options_, kGpt2EmbeddingDropoutSite, context);
  }

  const UnitOptions options_;
  const Places places_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Embedding(
    const UnitOptions& options) {
  const int64_t width = options.model.hidden_size();
  const MicroBatchShape& shape = options.build.shape;
  ASSIGN_OR_RETURN(TensorPlace wte,
                   FindParameter(options.unit, "transformer.wte.weight",
                                 {options.model.vocab_size(), width}));
  ASSIGN_OR_RETURN(
      TensorPlace wpe,
      FindParameter(options.unit, "transformer.wpe.weight",
                    {options.model.max_position_embeddings(), width}));
  BufferLayout activation;
  BufferLayout workspace;
  Gpt2Embedding::Places places = {
      .wte = std::move(wte),
      .wpe = std::move(wpe),
      .output = activation.Add({shape.sequences, shape.sequence_length, width}),
      .d_sum = workspace.Add({shape.sequences, shape.sequence_length, width}),
  };
  RETURN_IF_ERROR(CheckGpt2Bytes(
      options.unit,
      {.activation = activation.bytes(), .workspace = workspace.bytes()}));
  return std::make_unique<Gpt2Embedding>(options, std::move(places));
}

}  // namespace troupe
