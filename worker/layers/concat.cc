// Two tensors' columns side by side; their gradients apart again.
#include "ops/reduce.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class ConcatLayer final : public Layer {
 public:
  explicit ConcatLayer(const OpBinding& op)
      : first_(op.Input("first")),
        rest_(op.Input("rest")),
        y_(op.Output("y")),
        dfirst_(op.InputGradient("first")),
        drest_(op.InputGradient("rest")),
        dy_(op.OutputGradient("y")),
        first_columns_(ColumnsOf(op.view().input("first"))),
        columns_(ColumnsOf(op.view().output("y"))) {}

  void Forward(const LayerCall& call) const override {
    const Tensor y = y_.In(call);
    Copy(call.device, {.x = first_.In(call), .y = First(y)});
    Copy(call.device, {.x = rest_.In(call), .y = Rest(y)});
  }

  // A tensor of the batch, or a frozen one, has no gradient.
  void BackwardInput(const LayerCall& call) const override {
    const Tensor dy = dy_.In(call);
    if (dfirst_.exists()) {
      Copy(call.device, {.x = First(dy), .y = dfirst_.In(call)});
    }
    if (drest_.exists()) {
      Copy(call.device, {.x = Rest(dy), .y = drest_.In(call)});
    }
  }

 private:
  Tensor First(const Tensor& y) const {
    return y.Slice(y.rank() - 1, 0, first_columns_);
  }
  Tensor Rest(const Tensor& y) const {
    return y.Slice(y.rank() - 1, first_columns_, columns_);
  }

  const OperandPlace first_;
  const OperandPlace rest_;
  const OperandPlace y_;
  const OperandPlace dfirst_;
  const OperandPlace drest_;
  const OperandPlace dy_;
  const int64_t first_columns_;
  const int64_t columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewConcat(const OpBinding& op) {
  return std::make_unique<ConcatLayer>(op);
}

}  // namespace troupe
