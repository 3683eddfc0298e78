// Products of queries with the keys of one rank of a ring: their columns of the
// rows of scores. Head by head, as heads lie side by side.
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"
#include "worker/layers/ring_columns.h"

namespace troupe {
namespace {

class ScoresLayer final : public Layer {
 public:
  explicit ScoresLayer(const OpBinding& op)
      : q_(op.Input("q")),
        k_(op.Input("k")),
        y_(op.Output("y")),
        dq_(op.InputGradient("q")),
        dk_(op.InputGradient("k")),
        dy_(op.OutputGradient("y")),
        dq_added_(op.AddedGradient("q")),
        columns_(op, "k") {
    if (op.view().HasInput("y before")) {
      CHECK(columns_.SamePlace(op, "y before", "y")) << "scores of all keys";
    }
  }

  void Forward(const LayerCall& call) const override {
    const Tensor q = q_.In(call), k = k_.In(call), y = y_.In(call);
    columns_.ForHeads([&](const RingColumns::Head& head) {
      MatMul(call.device, {.a = head.OfQueries(q),
                           .b = head.OfKeys(k),
                           .c = head.OfRows(y),
                           .transpose_b = true});
    });
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor q = q_.In(call), k = k_.In(call), dy = dy_.In(call);
    const Tensor dq = dq_.In(call), dk = dk_.In(call);
    const bool adds = dq_added_.exists();
    if (adds) Copy(call.device, {.x = dq_added_.In(call), .y = dq});
    columns_.ForHeads([&](const RingColumns::Head& head) {
      MatMul(call.device, {.a = head.OfRows(dy),
                           .b = head.OfKeys(k),
                           .c = head.OfQueries(dq),
                           .accumulate = adds});
      MatMul(call.device, {.a = head.OfRows(dy),
                           .b = head.OfQueries(q),
                           .c = head.OfKeys(dk),
                           .transpose_a = true,
                           .accumulate = head.shares_keys});
    });
  }

 private:
  const OperandPlace q_;
  const OperandPlace k_;
  const OperandPlace y_;
  const OperandPlace dq_;
  const OperandPlace dk_;
  const OperandPlace dy_;
  const OperandPlace dq_added_;
  const RingColumns columns_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewScores(const OpBinding& op) {
  return std::make_unique<ScoresLayer>(op);
}

}  // namespace troupe
