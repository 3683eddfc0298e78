// The first section of x's columns and the others, each on its own; gradients
// side by side again.
#include "ops/reduce.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class SplitLayer final : public Layer {
 public:
  explicit SplitLayer(const OpBinding& op)
      : x_(op.Input("x")),
        y_(op.Output("y")),
        rest_(op.Output("rest")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        drest_(op.OutputGradient("rest")),
        first_(ColumnsOf(op.view().output("y"))),
        columns_(ColumnsOf(op.view().input("x"))) {}

  void Forward(const LayerCall& call) const override {
    const Tensor x = x_.In(call);
    Copy(call.device, {.x = First(x), .y = y_.In(call)});
    Copy(call.device, {.x = Rest(x), .y = rest_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dx = dx_.In(call);
    Copy(call.device, {.x = dy_.In(call), .y = First(dx)});
    Copy(call.device, {.x = drest_.In(call), .y = Rest(dx)});
  }

 private:
  Tensor First(const Tensor& x) const {
    return x.Slice(x.rank() - 1, 0, first_);
  }
  Tensor Rest(const Tensor& x) const {
    return x.Slice(x.rank() - 1, first_, columns_);
  }

  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace rest_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const OperandPlace drest_;
  const int64_t first_;
  const int64_t columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewSplit(const OpBinding& op) {
  return std::make_unique<SplitLayer>(op);
}

}  // namespace troupe
