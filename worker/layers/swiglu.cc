// y = silu(gate) * up, of the two halves of gate_up's columns; weighted by rows
// where the op has weights.
#include "ops/swiglu.h"

#include "worker/layers/kinds.h"

namespace troupe {
namespace {

Tensor Gate(const Tensor& both) {
  return both.Slice(both.rank() - 1, 0, both.columns() / 2);
}

Tensor Up(const Tensor& both) {
  return both.Slice(both.rank() - 1, both.columns() / 2, both.columns());
}

class SwiGluLayer final : public Layer {
 public:
  explicit SwiGluLayer(const OpBinding& op)
      : gate_up_(op.Input("gate_up")),
        weights_(op.Input("weights")),
        offsets_(op.Input("offsets")),
        y_(op.Output("y")),
        d_gate_up_(op.InputGradient("gate_up")),
        d_weights_(op.InputGradient("weights")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    const Tensor gate_up = gate_up_.In(call);
    SwiGlu(call.device, {.gate = Gate(gate_up),
                         .up = Up(gate_up),
                         .y = y_.In(call),
                         .weights = weights_.In(call),
                         .offsets = offsets_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor gate_up = gate_up_.In(call);
    const Tensor gradient = d_gate_up_.In(call);
    SwiGluBackward(call.device, {.gate = Gate(gate_up),
                                 .up = Up(gate_up),
                                 .dy = dy_.In(call),
                                 .d_gate = Gate(gradient),
                                 .d_up = Up(gradient),
                                 .weights = weights_.In(call),
                                 .d_weights = d_weights_.In(call),
                                 .offsets = offsets_.In(call)});
  }

 private:
  const OperandPlace gate_up_;
  const OperandPlace weights_;
  const OperandPlace offsets_;
  const OperandPlace y_;
  const OperandPlace d_gate_up_;
  const OperandPlace d_weights_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSwiGlu(const OpBinding& op) {
  return std::make_unique<SwiGluLayer>(op);
}

}  // namespace troupe
