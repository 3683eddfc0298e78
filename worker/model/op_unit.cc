#include "worker/model/op_unit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/new_layers.h"

namespace troupe {
namespace {

class OpUnit final : public ModelUnit {
 public:
  OpUnit(const UnitBinding& unit, std::vector<std::unique_ptr<Layer>> layers)
      : spec_(unit.unit),
        layers_(std::move(layers)),
        forward_(ForwardSegments(unit.table)),
        backward_(BackwardSegments(unit.table)),
        batch_offsets_(unit.batch_offsets) {
    for (int op = 0; op < unit.table.ops_size(); ++op) {
      const OpPlaces& places = unit.places.ops[op];
      const Op& spec = unit.table.ops(op);
      runs_again_.push_back(places.again != Again::kNo);
      has_gradients_.push_back(
          TrainsByOwnGradients(spec, RulesOf({unit.table, spec})) ||
          std::any_of(spec.inputs().begin(), spec.inputs().end(),
                      [&unit](const Op::Operand& input) {
                        return !unit.table.tensors(input.tensor()).no_gradient();
                      }));
      has_weight_pass_.push_back(places.makes_gradient_again ||
                                 TrainsAny(spec));
      has_input_pass_ |= std::any_of(
          places.input_gradients.begin(), places.input_gradients.end(),
          [](const TensorPlace& place) { return place.exists(); });
    }
    for (const TensorSpec& tensor : unit.table.tensors()) {
      has_input_pass_ |= tensor.home() == TensorSpec::INPUT;
    }
  }

  const Unit& spec() const override { return spec_; }

  void Forward(Device& device, const MicroBatchContext& context,
               const UnitBuffers& buffers) const override {
    const LayerCall call = Call(device, context, buffers);
    const Segment& segment = forward_.at(context.segment);
    for (int op = segment.begin; op < segment.end; ++op) {
      layers_[op]->Forward(call);
    }
  }

  void Recompute(Device& device, const MicroBatchContext& context,
                 const UnitBuffers& buffers) const override {
    LayerCall call = Call(device, context, buffers);
    call.pass = UnitPass::kRecompute;
    const Segment& segment = forward_.at(context.segment);
    for (int op = segment.begin; op < segment.end; ++op) {
      if (runs_again_[op]) layers_[op]->Recompute(call);
    }
  }

  void BackwardInput(Device& device, const MicroBatchContext& context,
                     const UnitBuffers& buffers) const override {
    CHECK(has_input_pass_) << "tokens have no gradient";
    LayerCall call = Call(device, context, buffers);
    call.pass = UnitPass::kBackward;
    const Segment& segment = backward_.at(context.segment);
    for (int op = segment.end - 1; op >= segment.begin; --op) {
      if (has_gradients_[op]) layers_[op]->BackwardInput(call);
    }
  }

  void BackwardWeight(Device& device, const MicroBatchContext& context,
                      const UnitBuffers& buffers) const override {
    LayerCall call = Call(device, context, buffers);
    call.pass = UnitPass::kBackward;
    const Segment& segment = backward_.at(context.segment);
    for (int op = segment.end - 1; op >= segment.begin; --op) {
      if (has_weight_pass_[op]) layers_[op]->BackwardWeight(call);
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
    const auto at = [&](UnitMemory memory) -> PortMemory& {
      return call.memory[static_cast<size_t>(memory)];
    };
    auto* const batch = static_cast<char*>(const_cast<void*>(buffers.batch));
    for (size_t port = 0; batch != nullptr && port < batch_offsets_.size();
         ++port) {
      at(UnitMemory::kBatch)[static_cast<int>(port)] =
          batch + batch_offsets_[port];
    }
    at(UnitMemory::kInput) = buffers.input;
    at(UnitMemory::kOutput) = buffers.output;
    at(UnitMemory::kStash) = buffers.stash;
    at(UnitMemory::kWeightStash) = buffers.weight_stash;
    at(UnitMemory::kWorkspace) = buffers.workspace;
    at(UnitMemory::kSegmentValues) = buffers.segment;
    at(UnitMemory::kSegmentGradients) = buffers.segment_gradient;
    at(UnitMemory::kRecomputed) = buffers.recomputed;
    at(UnitMemory::kInputGradient) = buffers.input_gradient;
    at(UnitMemory::kOutputGradient) = buffers.output_gradient;
    return call;
  }

  const Unit spec_;
  const std::vector<std::unique_ptr<Layer>> layers_;
  const std::vector<Segment> forward_;
  const std::vector<Segment> backward_;
  // By op: whether it is made again, it makes a gradient of an input or its
  // own, and there is something to do for its parameters, or with them.
  std::vector<bool> runs_again_;
  std::vector<bool> has_gradients_;
  std::vector<bool> has_weight_pass_;
  bool has_input_pass_ = false;  // it reads a unit, or an op makes a gradient
  const std::vector<int64_t> batch_offsets_;  // by port
};

}  // namespace

absl::StatusOr<std::unique_ptr<ModelUnit>> NewOpUnit(const UnitBinding& unit) {
  ASSIGN_OR_RETURN(auto layers, NewLayers(unit));
  return std::make_unique<OpUnit>(unit, std::move(layers));
}

}  // namespace troupe
