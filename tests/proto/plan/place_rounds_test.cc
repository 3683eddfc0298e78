// Where everything lies of rows that go to the ranks of their experts in
// several rounds, and come back.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/check_units.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/segments.h"
#include "tests/proto/plan/rounds_table.h"

namespace troupe {
namespace {

// Ops of the kind that are of a round.
std::vector<int> Find(const UnitTable& table, Op::Kind kind) {
  std::vector<int> found;
  for (int op = 0; op < table.ops_size(); ++op) {
    if (table.ops(op).kind() == kind && table.ops(op).has_round()) {
      found.push_back(op);
    }
  }
  return found;
}

ExchangePlaces PlacesOf(const UnitTable& table, const UnitPlaces& places,
                        int op, bool backward) {
  Instruction::Exchange exchange;
  exchange.set_op(op);
  exchange.set_backward(backward);
  return PlacesOfExchange(table, places, exchange);
}

TEST(PlaceRounds, EachRoundHasItsOwnPlacesButForWhatAllMakeInParts) {
  const UnitTable table = RoundsTable({});
  const auto placed = TryPlaceUnit(table, UnitUse::kTraining);
  ASSERT_TRUE(placed.ok()) << placed.status();
  const UnitPlaces& places = *placed;
  // Rows, gates, back; of both rounds.
  const std::vector<int> ops = Find(table, Op::EXCHANGE);
  ASSERT_EQ(ops.size(), 6u);
  for (const bool backward : {false, true}) {
    for (const int op : ops) {
      const ExchangePlaces of = PlacesOf(table, places, op, backward);
      EXPECT_FALSE(of.in_place);
      // The table of offsets is kept for the backward passes.
      EXPECT_EQ(of.sizes.memory, UnitMemory::kStash);
    }
  }
  const auto forward = [&](int op) {
    return PlacesOf(table, places, op, /*backward=*/false);
  };
  const auto backward = [&](int op) {
    return PlacesOf(table, places, op, /*backward=*/true);
  };
  // Both bring rows back to one place, and send those of one.
  EXPECT_TRUE(AreSamePlace(forward(ops[2]).to, forward(ops[5]).to));
  EXPECT_TRUE(AreSamePlace(forward(ops[0]).from, forward(ops[3]).from));
  // So it is with gradients.
  EXPECT_TRUE(AreSamePlace(backward(ops[0]).to, backward(ops[3]).to));
  EXPECT_EQ(backward(ops[0]).to.memory, UnitMemory::kInputGradient);
  EXPECT_TRUE(AreSamePlace(backward(ops[1]).to, backward(ops[4]).to));
  EXPECT_TRUE(AreSamePlace(backward(ops[2]).from, backward(ops[5]).from));
  EXPECT_EQ(backward(ops[2]).from.memory, UnitMemory::kOutputGradient);
}

TEST(PlaceRounds, LaterRoundsShareTheMemoryOfWhatIsMadeAgain) {
  const auto place = [](int rounds, bool again) {
    return PlaceUnit(RoundsTable({.rounds = rounds, .again = again}),
                     UnitUse::kTraining);
  };
  const UnitPlaces one = place(1, true);
  const UnitPlaces two = place(2, true);
  const UnitPlaces four = place(4, true);
  EXPECT_EQ(one.recomputed_bytes, 0);
  EXPECT_GT(two.recomputed_bytes, 0);
  EXPECT_EQ(four.recomputed_bytes, two.recomputed_bytes);
  // So do gradients for BACKWARD_WEIGHT.
  EXPECT_GT(two.weight_stash_bytes, one.weight_stash_bytes);
  EXPECT_EQ(four.weight_stash_bytes, two.weight_stash_bytes);
  // No round but the first keeps anything.
  EXPECT_EQ(four.stash_bytes, one.stash_bytes);
  EXPECT_GT(place(4, false).stash_bytes, one.stash_bytes);
}

TEST(PlaceRounds, OpsBetweenTheExchangesOfARoundAreOfIt) {
  const UnitTable table = RoundsTable({.rounds = 3});
  const std::vector<int> rounds = RoundsOfOps(table);
  ASSERT_EQ(rounds.size(), 1u + 3 * kOpsOfRound);
  EXPECT_EQ(rounds[0], 0);
  for (int op = 0; op < 3 * kOpsOfRound; ++op) {
    EXPECT_EQ(rounds[op + 1], op / kOpsOfRound) << op;
  }
  // A segment has ops of one round.
  for (const bool backward : {false, true}) {
    for (const Segment& segment :
         backward ? BackwardSegments(table) : ForwardSegments(table)) {
      for (int op = segment.begin; op < segment.end; ++op) {
        EXPECT_EQ(rounds[op], rounds[segment.begin]);
      }
    }
  }
}

std::string Refusal(UnitTable table) {
  Plan plan;
  *plan.add_tables() = std::move(table);
  return std::string(CheckUnits(plan).message());
}

TEST(PlaceRounds, TablesOfOtherRanksAndRowsAreRefused) {
  EXPECT_EQ(Refusal(RoundsTable({})), "");
  const int exchange = Find(RoundsTable({}), Op::EXCHANGE)[0];
  const int regroup = Find(RoundsTable({}), Op::REGROUP)[1];
  const auto changed = [&](int op, const auto& change) {
    UnitTable table = RoundsTable({});
    change(*table.mutable_ops(op), table);
    return Refusal(std::move(table));
  };
  const auto expect = [&](const std::string& refusal, const std::string& what) {
    EXPECT_NE(refusal.find(what), std::string::npos) << refusal;
  };
  expect(changed(exchange,
                 [](Op& op, UnitTable&) { op.mutable_round()->set_ranks(4); }),
         "EXCHANGE: is of a round of 4 ranks, but offsets are [2, 5]");
  expect(changed(regroup,
                 [](Op& op, UnitTable&) { op.mutable_round()->set_ranks(0); }),
         "REGROUP: is of a round of 0 ranks, but offsets are [2, 5]");
  expect(changed(exchange,
                 [](Op& op, UnitTable&) { op.mutable_inputs()->RemoveLast(); }),
         "EXCHANGE: is of a round, but lacks offsets or rows");
  expect(changed(exchange,
                 [](Op& op, UnitTable& table) {
                   table.mutable_tensors(op.outputs(0).tensor())
                       ->mutable_dims(3)
                       ->mutable_sections(0)
                       ->set_count(99);
                 }),
         "EXCHANGE: makes received of rows, whose rows are others");
}

}  // namespace
}  // namespace troupe
