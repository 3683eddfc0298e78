// Values of one rank of a ring, weighted by their columns of the probabilities,
// added to those of the ranks before. Head by head.
#include "ops/matmul.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"
#include "worker/layers/ring_columns.h"

namespace troupe {
namespace {

class WeightedValuesLayer final : public Layer {
 public:
  explicit WeightedValuesLayer(const OpBinding& op)
      : p_(op.Input("p")),
        v_(op.Input("v")),
        y_(op.Output("y")),
        dp_(op.InputGradient("p")),
        dv_(op.InputGradient("v")),
        dy_(op.OutputGradient("y")),
        adds_(op.view().HasInput("y before")),
        columns_(op, "v") {
    if (adds_) CHECK(columns_.SamePlace(op, "y before", "y")) << "adds to it";
  }

  void Forward(const LayerCall& call) const override {
    const Tensor p = p_.In(call), v = v_.In(call), y = y_.In(call);
    columns_.ForHeads([&](const RingColumns::Head& head) {
      MatMul(call.device, {.a = head.OfRows(p),
                           .b = head.OfKeys(v),
                           .c = head.OfQueries(y),
                           .accumulate = adds_});
    });
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor p = p_.In(call), v = v_.In(call), dy = dy_.In(call);
    const Tensor dp = dp_.In(call), dv = dv_.In(call);
    columns_.ForHeads([&](const RingColumns::Head& head) {
      MatMul(call.device, {.a = head.OfQueries(dy),
                           .b = head.OfKeys(v),
                           .c = head.OfRows(dp),
                           .transpose_b = true});
      MatMul(call.device, {.a = head.OfRows(p),
                           .b = head.OfQueries(dy),
                           .c = head.OfKeys(dv),
                           .transpose_a = true,
                           .accumulate = head.shares_keys});
    });
  }

 private:
  const OperandPlace p_;
  const OperandPlace v_;
  const OperandPlace y_;
  const OperandPlace dp_;
  const OperandPlace dv_;
  const OperandPlace dy_;
  const bool adds_;
  const RingColumns columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewWeightedValues(const OpBinding& op) {
  return std::make_unique<WeightedValuesLayer>(op);
}

}  // namespace troupe
