// Gates of choices for which their expert has no room are 0.
#include "ops/capacity.h"

#include <string>
#include <vector>

#include "ops/reduce.h"
#include "proto/plan/sum_names.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class CapacityLayer final : public Layer {
 public:
  explicit CapacityLayer(const OpBinding& op)
      : spec_(op.op().capacity()),
        rows_(op.RowsOfSequences("gates")),
        rank_(op.RankAlong(AxesThatCut(op.view().input("choices")))),
        choices_(op.Input("choices")),
        gates_(op.Input("gates")),
        counts_(op.Input("counts")),
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
  // Outermost first.
  static std::vector<std::string> AxesThatCut(const TensorSpec& choices) {
    std::vector<std::string> axes;
    for (const auto& cut : choices.dims(1).sections(0).cuts()) {
      axes.push_back(cut.axis());
    }
    return axes;
  }

  // [ranks, sequences x choices, experts].
  Tensor Counts(const LayerCall& call) const {
    if (!counts_.exists()) return {};
    const Tensor counts = counts_.In(call);
    return counts.View(
        {counts.dim(0), counts.dim(1) * counts.dim(2), counts.dim(3)});
  }

  void Run(const LayerCall& call, const Tensor& dropped) const {
    Capacity(call.device, {.choices = choices_.In(call),
                           .gates = gates_.In(call),
                           .rows = rows_,
                           .experts = spec_.experts(),
                           .places = spec_.places(),
                           .counts = Counts(call),
                           .rank = rank_,
                           .kept = kept_.In(call),
                           .dropped = dropped});
  }

  const Op::Capacity spec_;
  const TokenRows rows_;
  const int rank_;  // of those that have some of the sequences
  const OperandPlace choices_;
  const OperandPlace gates_;
  const OperandPlace counts_;  // of these ranks
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
