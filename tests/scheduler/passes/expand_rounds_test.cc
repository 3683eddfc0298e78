// The order of the passes of a unit whose rows go to their experts in rounds.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/unit_passes.h"
#include "scheduler/passes/expand_order.h"
#include "tests/proto/plan/rounds_table.h"

namespace troupe {
namespace {

constexpr auto kF = ComputeStep::kForward;
constexpr auto kI = ComputeStep::kBackwardInput;
constexpr auto kW = ComputeStep::kBackwardWeight;

// One stage of one unit, in three rounds.
Draft DraftOfRounds() {
  Draft draft;
  Axis& pipeline = *draft.plan.mutable_mesh()->add_axes();
  pipeline.set_name("pipeline");
  pipeline.set_size(1);
  draft.plan.add_roles();
  *draft.plan.add_tables() = RoundsTable({.rounds = 3, .again = true});
  Unit unit;
  unit.set_kind(Unit::BLOCK);
  unit.set_table(0);
  unit.add_parameters();
  *draft.plan.add_units() = unit;
  draft.stage_units = {{0}};
  Op::Exchange along;
  along.add_axes("expert");
  draft.plan.add_groups()->set_name(ExchangeGroupName(along));
  return draft;
}

// F, C, I and W of a round, and exchanges: X, backward B, once more Y. Of one
// micro-batch.
std::string Words(const Draft& draft, int micro_batch) {
  const UnitPasses passes(draft.plan);
  std::string words;
  for (const Instruction& instruction :
       draft.plan.roles(0).programs(0).instructions()) {
    if (instruction.micro_batch() != micro_batch) continue;
    if (instruction.kind() == Instruction::EXCHANGE) {
      const Instruction::Exchange& what = instruction.exchange();
      absl::StrAppend(&words,
                      what.backward() ? "B"
                      : what.again()  ? "Y"
                                      : "X",
                      passes.RoundOf(0, what.op()), " ");
      continue;
    }
    const int begin = passes.Of(0, instruction.kind())
                          .at(instruction.segment())
                          .segment.begin;
    const char* const kind =
        instruction.kind() == Instruction::FORWARD          ? "F"
        : instruction.kind() == Instruction::RECOMPUTE      ? "C"
        : instruction.kind() == Instruction::BACKWARD_INPUT ? "I"
                                                            : "W";
    absl::StrAppend(&words, kind, passes.RoundOf(0, begin), " ");
  }
  return words;
}

constexpr char kForward[] = "X0 X0 X0 F0 X0 X1 X1 F1 X1 X2 X2 F2 X2 ";

TEST(ExpandRounds, LaterRoundsAreMadeAgainInFrontOfTheirBackwardPasses) {
  Draft draft = DraftOfRounds();
  const ComputeOrder order = {{{kF, 0, 0}, {kI, 0, 0}, {kW, 0, 0}}};
  ExpandOrder(order, order, Program::TRAIN, /*replica_kind=*/0, draft);
  EXPECT_EQ(Words(draft, 0), absl::StrCat(kForward,
                                          "B2 Y2 Y2 C2 I2 B2 W2 B2 "
                                          "B1 Y1 Y1 C1 I1 B1 W1 B1 "
                                          "B0 I0 B0 W0 B0 "));
}

// What a later round has made again is gone when the next one comes.
TEST(ExpandRounds, OnlyTheFirstRoundsWeightPassWaitsWhereTheTwoAreSplit) {
  Draft draft = DraftOfRounds();
  const ComputeOrder order = {
      {{kF, 0, 0}, {kF, 0, 1}, {kI, 0, 0}, {kI, 0, 1}, {kW, 0, 0}, {kW, 0, 1}}};
  ExpandOrder(order, order, Program::TRAIN, /*replica_kind=*/0, draft);
  for (const int micro_batch : {0, 1}) {
    EXPECT_EQ(Words(draft, micro_batch), absl::StrCat(kForward,
                                                      "B2 Y2 Y2 C2 I2 B2 W2 B2 "
                                                      "B1 Y1 Y1 C1 I1 B1 W1 B1 "
                                                      "B0 I0 B0 B0 W0 "));
  }
}

}  // namespace
}  // namespace troupe
