// Rows that came from the ranks that have the tokens, grouped by this rank's
// experts, with their gates; and back.
#include "ops/regroup.h"

#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

// [.., .., ..] as rows of one number.
Tensor RegroupedColumn(const Tensor& numbers) {
  return numbers.View({numbers.elements(), 1});
}

// The op's round on this rank.
class OwnRound {
 public:
  explicit OwnRound(const OpBinding& op)
      : offsets_(op.Input("offsets")),
        rank_(op.RankAlong({op.op().round().axes().begin(),
                            op.op().round().axes().end()})),
        number_(op.op().round().number()),
        rows_max_(RowsOf(op.view().input("x"))) {}

  RoundOfRows In(const LayerCall& call) const {
    return {.offsets = offsets_.In(call),
            .rank = rank_,
            .number = number_,
            .rows_max = rows_max_};
  }

 private:
  const OperandPlace offsets_;
  const int rank_;
  const int64_t number_;
  const int64_t rows_max_;
};

class RegroupLayer final : public Layer {
 public:
  explicit RegroupLayer(const OpBinding& op)
      : round_(op),
        x_(op.Input("x")),
        gates_(op.Input("gates")),
        rows_(op.Output("rows")),
        row_gates_(op.Output("row_gates")),
        own_offsets_(op.Output("own_offsets")),
        dx_(op.InputGradient("x")),
        d_gates_(op.InputGradient("gates")),
        d_rows_(op.OutputGradient("rows")),
        d_row_gates_(op.OutputGradient("row_gates")) {}

  void Forward(const LayerCall& call) const override {
    const RoundOfRows round = round_.In(call);
    Regroup(call.device,
            {.round = round, .x = x_.RowsIn(call), .y = rows_.RowsIn(call)});
    Regroup(call.device, {.round = round,
                          .x = RegroupedColumn(gates_.In(call)),
                          .y = RegroupedColumn(row_gates_.In(call))});
    OwnOffsets(call.device,
               {.round = round, .own_offsets = own_offsets_.In(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const RoundOfRows round = round_.In(call);
    if (dx_.exists()) {
      Ungroup(
          call.device,
          {.round = round, .x = d_rows_.RowsIn(call), .y = dx_.RowsIn(call)});
    }
    if (!d_gates_.exists()) return;
    Ungroup(call.device, {.round = round,
                          .x = RegroupedColumn(d_row_gates_.In(call)),
                          .y = RegroupedColumn(d_gates_.In(call))});
  }

 private:
  const OwnRound round_;
  const OperandPlace x_;
  const OperandPlace gates_;
  const OperandPlace rows_;
  const OperandPlace row_gates_;
  const OperandPlace own_offsets_;
  const OperandPlace dx_;
  const OperandPlace d_gates_;
  const OperandPlace d_rows_;
  const OperandPlace d_row_gates_;
};

class UngroupLayer final : public Layer {
 public:
  explicit UngroupLayer(const OpBinding& op)
      : round_(op),
        x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")) {}

  void Forward(const LayerCall& call) const override {
    Ungroup(
        call.device,
        {.round = round_.In(call), .x = x_.RowsIn(call), .y = y_.RowsIn(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    Regroup(call.device, {.round = round_.In(call),
                          .x = dy_.RowsIn(call),
                          .y = dx_.RowsIn(call)});
  }

 private:
  const OwnRound round_;
  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRegroup(const OpBinding& op) {
  return std::make_unique<RegroupLayer>(op);
}

absl::StatusOr<std::unique_ptr<Layer>> NewUngroup(const OpBinding& op) {
  return std::make_unique<UngroupLayer>(op);
}

}  // namespace troupe
