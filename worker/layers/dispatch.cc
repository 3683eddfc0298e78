// Rows of tokens, expert by expert, and their gates; gradients back to tokens.
#include "ops/permute.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

Tensor Column(const Tensor& numbers) {
  return numbers.View({numbers.elements(), 1});
}

class DispatchLayer final : public Layer {
 public:
  explicit DispatchLayer(const OpBinding& op)
      : x_(op.Input("x")),
        choices_(op.Input("choices")),
        gates_(op.Input("gates")),
        rows_(op.Output("rows")),
        row_gates_(op.Output("row_gates")),
        sources_(op.Output("sources")),
        places_(op.Output("places")),
        offsets_(op.Output("offsets")),
        dx_(op.InputGradient("x")),
        d_gates_(op.InputGradient("gates")),
        d_rows_(op.OutputGradient("rows")),
        d_row_gates_(op.OutputGradient("row_gates")) {}

  void Forward(const LayerCall& call) const override {
    const Tensor choices = choices_.In(call);
    const Tensor sources = sources_.In(call);
    SortChoices(call.device, {.choices = choices,
                              .sources = sources,
                              .places = places_.In(call),
                              .offsets = offsets_.In(call)});
    GatherRows(call.device, {.x = x_.In(call),
                             .sources = sources,
                             .choices = static_cast<int>(choices.columns()),
                             .y = rows_.In(call)});
    GatherRows(call.device, {.x = Column(gates_.In(call)),
                             .sources = sources,
                             .y = Column(row_gates_.In(call))});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor places = places_.In(call);
    if (dx_.exists()) {
      SumRows(call.device,
              {.x = d_rows_.In(call), .places = places, .y = dx_.In(call)});
    }
    if (!d_gates_.exists()) return;
    GatherRows(call.device, {.x = Column(d_row_gates_.In(call)),
                             .sources = places,
                             .y = Column(d_gates_.In(call))});
  }

 private:
  const OperandPlace x_;
  const OperandPlace choices_;
  const OperandPlace gates_;
  const OperandPlace rows_;
  const OperandPlace row_gates_;
  const OperandPlace sources_;
  const OperandPlace places_;
  const OperandPlace offsets_;
  const OperandPlace dx_;
  const OperandPlace d_gates_;
  const OperandPlace d_rows_;
  const OperandPlace d_row_gates_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewDispatch(const OpBinding& op) {
  return std::make_unique<DispatchLayer>(op);
}

}  // namespace troupe
