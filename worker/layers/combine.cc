// Each token's rows added up; its gradient is that of each of them.
#include "ops/permute.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class CombineLayer final : public Layer {
 public:
  explicit CombineLayer(const OpBinding& op)
      : x_(op.Input("x")),
        sources_(op.Input("sources")),
        places_(op.Input("places")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    SumRows(call.device,
            {.x = x_.In(call), .places = places_.In(call), .y = y_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor sources = sources_.In(call);
    GatherRows(call.device, {.x = dy_.In(call),
                             .sources = sources,
                             .choices = static_cast<int>(sources.columns()),
                             .y = dx_.In(call)});
  }

 private:
  const OperandPlace x_;
  const OperandPlace sources_;
  const OperandPlace places_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCombine(const OpBinding& op) {
  return std::make_unique<CombineLayer>(op);
}

}  // namespace troupe
