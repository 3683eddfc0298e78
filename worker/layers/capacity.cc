// Gates of choices for which their expert has no room are 0.
#include "ops/capacity.h"

#include "ops/reduce.h"
#include "proto/plan/sum_names.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class CapacityLayer final : public Layer {
 public:
  explicit CapacityLayer(const OpBinding& op)
      : spec_(op.op().capacity()),
        tokens_(op.RowsOfSequences("gates").tokens),
        choices_(op.Input("choices")),
        gates_(op.Input("gates")),
        kept_(op.Output("kept")),
        d_gates_(op.InputGradient("gates")),
        d_kept_(op.OutputGradient("kept")),
        dropped_(op.Sum(kDroppedChoicesSum)) {}

  void Forward(const LayerCall& call) const override {
    // A text that grows token by token has no sequence to share out.
    if (call.decoding.count > 0) {
      Copy(call.device, {.x = gates_.In(call), .y = kept_.In(call)});
      return;
    }
    Run(call, dropped_.adds() ? dropped_.In(call) : Tensor());
  }

  // The dropped ones are counted already.
  void Recompute(const LayerCall& call) const override { Run(call, {}); }

  void BackwardInput(const LayerCall& call) const override {
    CapacityBackward(call.device, {.kept = kept_.In(call),
                                   .d_kept = d_kept_.In(call),
                                   .d_gates = d_gates_.In(call)});
  }

 private:
  void Run(const LayerCall& call, const Tensor& dropped) const {
    Capacity(call.device, {.choices = choices_.In(call),
                           .gates = gates_.In(call),
                           .tokens = tokens_,
                           .experts = spec_.experts(),
                           .places = spec_.places(),
                           .kept = kept_.In(call),
                           .dropped = dropped});
  }

  const Op::Capacity spec_;
  const int64_t tokens_;  // of a sequence
  const OperandPlace choices_;
  const OperandPlace gates_;
  const OperandPlace kept_;
  const OperandPlace d_gates_;
  const OperandPlace d_kept_;
  const SumTarget dropped_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewCapacity(const OpBinding& op) {
  return std::make_unique<CapacityLayer>(op);
}

}  // namespace troupe
