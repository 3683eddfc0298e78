#include "worker/model/op_unit.h"

#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/new_layers.h"

namespace troupe {
namespace {

class OpUnit final : public ModelUnit {
 public:
  OpUnit(const UnitBinding& unit, std::vector<std::unique_ptr<Layer>> layers)
      : spec_(unit.unit), layers_(std::move(layers)) {
    for (const TensorSpec& tensor : unit.table.tensors()) {
      if (tensor.home() == TensorSpec::INPUT) has_input_ = true;
      if (tensor.home() == TensorSpec::TARGETS) tokens_ = ElementsOf(tensor);
    }
  }

  const Unit& spec() const override { return spec_; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    const LayerCall call = Call(device, context, buffers);
    for (const auto& layer : layers_) layer->Forward(call);
  }

  void BackwardInput(Device& device, const MicroBatchContext& context,
                     const UnitBuffers& buffers) const override {
    CHECK(has_input_) << "tokens have no gradient";
    const LayerCall call = Call(device, context, buffers);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      (*layer)->BackwardInput(call);
    }
  }

  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override {
    const LayerCall call = Call(device, context, buffers);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
      (*layer)->BackwardWeight(call);
    }
  }

 private:
  LayerCall Call(Device& device, const MicroBatchContext& context,
                 const UnitBuffers& buffers) const {
    LayerCall call = {
        .device = device,
        .context = context,
        .parameters = buffers.parameters,
        .tied_parameters = buffers.tied_parameters,
        .parameter_gradients = buffers.parameter_gradients,
        .tied_parameter_gradients = buffers.tied_parameter_gradients,
        .scalars = buffers.scalars};
    const auto at = [&](UnitMemory memory) -> void*& {
      return call.memory[static_cast<size_t>(memory)];
    };
    if (buffers.batch != nullptr) {
      auto* const batch = const_cast<int32_t*>(buffers.batch);
      at(UnitMemory::kTokens) = batch;
      at(UnitMemory::kTargets) = batch + tokens_;
    }
    at(UnitMemory::kInput) = buffers.input;
    at(UnitMemory::kOutput) = buffers.output;
    at(UnitMemory::kStash) = buffers.stash;
    at(UnitMemory::kWeightStash) = buffers.weight_stash;
    at(UnitMemory::kWorkspace) = buffers.workspace;
    at(UnitMemory::kInputGradient) = buffers.input_gradient;
    at(UnitMemory::kOutputGradient) = buffers.output_gradient;
    return call;
  }

  const Unit spec_;
  const std::vector<std::unique_ptr<Layer>> layers_;
  bool has_input_ = false;
  int64_t tokens_ = 0;  // of the batch, before its targets
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewOpUnit(const UnitBinding& unit) {
  ASSIGN_OR_RETURN(auto layers, NewLayers(unit));
  return std::make_unique<OpUnit>(unit, std::move(layers));
}

}  // namespace troupe
