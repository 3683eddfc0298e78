// Queries, keys and values side by side; their gradients apart again.
#include "ops/join_heads.h"

#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class JoinHeadsLayer final : public Layer {
 public:
  explicit JoinHeadsLayer(const OpBinding& op)
      : values_(op, /*gradients=*/false), gradients_(op, /*gradients=*/true) {
    const OpView view = op.view();
    const Dim& columns = view.output("y").dims(2);
    shape_ = {.heads = static_cast<int>(columns.sections(0).count()),
              .kv_heads = static_cast<int>(columns.sections(1).count()),
              .key_width = columns.sections(1).width(),
              .value_width = columns.sections(2).width(),
              .shared_width =
                  view.HasInput("shared") ? ColumnsOf(view.input("shared")) : 0,
              .values_in_keys = !view.HasInput("v"),
              .interleaved = op.op().join_heads().interleaved()};
  }

  void Forward(const LayerCall& call) const override {
    JoinHeads(call.device, values_.In(call, shape_));
  }

  void BackwardInput(const LayerCall& call) const override {
    JoinHeadsBackward(call.device, gradients_.In(call, shape_));
  }

 private:
  // Values, or gradients, of all operands.
  struct Places {
    Places(const OpBinding& op, bool gradients)
        : q(Input(op, "q", gradients)),
          k(Input(op, "k", gradients)),
          v(Input(op, "v", gradients)),
          shared(Input(op, "shared", gradients)),
          y(gradients ? op.OutputGradient("y") : op.Output("y")) {}

    static OperandPlace Input(const OpBinding& op, absl::string_view name,
                              bool gradient) {
      return gradient ? op.InputGradient(name) : op.Input(name);
    }

    JoinHeadsArgs In(const LayerCall& call, JoinHeadsArgs args) const {
      args.q = q.In(call);
      args.k = k.In(call);
      args.v = v.In(call);
      args.shared = shared.In(call);
      args.y = y.In(call);
      return args;
    }

    const OperandPlace q;
    const OperandPlace k;
    const OperandPlace v;
    const OperandPlace shared;
    const OperandPlace y;
  };

  const Places values_;
  const Places gradients_;
  JoinHeadsArgs shape_;  // without tensors
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewJoinHeads(const OpBinding& op) {
  return std::make_unique<JoinHeadsLayer>(op);
}

}  // namespace troupe
