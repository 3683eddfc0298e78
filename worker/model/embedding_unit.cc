#include "worker/model/embedding_unit.h"

#include <utility>

#include "ops/dropout.h"
#include "ops/embedding.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "worker/model/dropout_masks.h"
#include "worker/model/tensor_place.h"
#include "worker/model/unit_bytes.h"

namespace troupe {
namespace {

class EmbeddingUnit final : public ModelUnit {
 public:
  struct Places {
    ParameterPlace wte;  // [vocab, width]
    ParameterPlace wpe;  // [positions, width], optional
    TensorPlace output;  // [sequences, time, width]
    TensorPlace d_sum;   // workspace, of the same shape, where there is dropout
  };
  EmbeddingUnit(const UnitOptions& options, Places places,
                absl::optional<uint32_t> dropout_site)
      : options_(options),
        places_(std::move(places)),
        dropout_site_(dropout_site) {}

  const Unit& spec() const override { return options_.unit; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    const Tensor output = places_.output.In(buffers.output);
    Embedding(device, {.tokens = Tokens(buffers),
                       .wte = places_.wte.values.In(buffers.parameters),
                       .wpe = PositionTable(buffers.parameters),
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
    EmbeddingBackward(
        device,
        {.tokens = Tokens(buffers),
         .dy = d_sum,
         .dwte = places_.wte.gradient.In(buffers.parameter_gradients),
         .dwpe = places_.wpe.defined()
                     ? places_.wpe.gradient.In(buffers.parameter_gradients)
                     : Tensor()});
  }

  int64_t CacheBytes(int64_t) const override { return 0; }
  int64_t DecodeWorkspaceBytes() const override { return 0; }

  void Decode(Device& device, int64_t,
              const DecodeBuffers& buffers) const override {
    Embedding(device,
              {.tokens = Tensor(const_cast<int32_t*>(buffers.tokens),
                                DType::kI32, {1, buffers.count}),
               .wte = places_.wte.values.In(buffers.parameters),
               .wpe = PositionTable(buffers.parameters),
               .y = Tensor(buffers.output, places_.output.dtype,
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
    if (!dropout_site_.has_value()) return {};
    return HiddenMask(options_, *dropout_site_, context);
  }
  Tensor PositionTable(void* parameters) const {
    if (!places_.wpe.defined()) return Tensor();
    return places_.wpe.values.In(parameters);
  }

  const UnitOptions options_;
  const Places places_;
  const absl::optional<uint32_t> dropout_site_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewEmbeddingUnit(
    const UnitOptions& options, const EmbeddingTables& tables) {
  const int64_t width = options.model.hidden_size();
  const MicroBatchShape& shape = options.build.shape;
  EmbeddingUnit::Places places;
  ASSIGN_OR_RETURN(places.wte,
                   FindParameter(options.unit, tables.tokens,
                                 {options.model.vocab_size(), width}));
  if (!tables.positions.empty()) {
    ASSIGN_OR_RETURN(
        places.wpe,
        FindParameter(options.unit, tables.positions,
                      {options.model.max_position_embeddings(), width}));
  }
  const DType dtype = ComputeDType(shape.dtype);
  BufferLayout activation;
  BufferLayout workspace;
  places.output =
      activation.Add({shape.sequences, shape.sequence_length, width}, dtype);
  if (tables.dropout_site.has_value()) {
    places.d_sum =
        workspace.Add({shape.sequences, shape.sequence_length, width}, dtype);
  }
  RETURN_IF_ERROR(CheckUnitBytes(
      options.unit,
      {.activation = activation.bytes(), .workspace = workspace.bytes()}));
  return std::make_unique<EmbeddingUnit>(options, std::move(places),
                                         tables.dropout_site);
}

}  // namespace troupe
