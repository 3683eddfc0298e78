// Where everything lies of rows that go to the ranks of their experts in
// several rounds, and come back. What experts do here is SWIGLU.
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/check_units.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kColumns = 3;  // of gate, of up, and of what comes back
constexpr int kRanks = 2;
constexpr int64_t kExperts = 4;

Dim Count(Dim::Kind kind, int64_t count) { return DimOf({{kind, count}}); }

// 2 sequences of 3, 2 choices; a round has as many rows as a rank dispatches.
class Table {
 public:
  // Of the rounds but the first nothing is kept where `again`.
  explicit Table(int rounds = 2, bool again = false) : again_(again) {
    rows_ = Tensor("rows", OfRows());
    table_.mutable_tensors(rows_)->set_home(TensorSpec::INPUT);
    gates_ = Tensor("gates", OfGates(), F32);
    table_.mutable_tensors(gates_)->set_home(TensorSpec::INPUT);
    own_ = Tensor("own", {Count(Dim::STATISTICS, kExperts + 1)}, I32);
    table_.mutable_tensors(own_)->set_home(TensorSpec::TOKENS);
    all_ = Tensor(
        "all",
        {Count(Dim::STATISTICS, kRanks), Count(Dim::STATISTICS, kExperts + 1)},
        I32);
    Op& gather = Add(Op::EXCHANGE, {{"x", own_}}, {{"y", all_}});
    gather.mutable_exchange()->set_axis("expert");
    gather.mutable_exchange()->set_forward(ALL_GATHER);
    int back = -1;
    for (int round = 0; round < rounds; ++round) back = AddRound(round, back);
    table_.mutable_tensors(back)->set_home(TensorSpec::OUTPUT);
  }

  UnitTable& table() { return table_; }
  // Ops of the kind, with or without a round.
  std::vector<int> Find(Op::Kind kind, bool round) const {
    std::vector<int> found;
    for (int op = 0; op < table_.ops_size(); ++op) {
      if (table_.ops(op).kind() == kind &&
          table_.ops(op).has_round() == round) {
        found.push_back(op);
      }
    }
    return found;
  }

 private:
  using Operands = std::vector<std::pair<const char*, int>>;

  static std::vector<Dim> OfGates() {
    return {Count(Dim::BATCH, 2), Count(Dim::SEQUENCE, 3),
            Count(Dim::CHOICES, 2)};
  }
  static std::vector<Dim> OfRows() {
    std::vector<Dim> dims = OfGates();
    dims.push_back(
        DimOf({{Dim::INTERMEDIATE, kColumns}, {Dim::INTERMEDIATE, kColumns}}));
    return dims;
  }
  static std::vector<Dim> OfResults() {
    std::vector<Dim> dims = OfGates();
    dims.push_back(Count(Dim::INTERMEDIATE, kColumns));
    return dims;
  }

  int Tensor(const std::string& name, const std::vector<Dim>& dims,
             ElementType dtype = F32) {
    TensorSpec& tensor = *table_.add_tensors();
    tensor.set_name(name);
    for (const Dim& dim : dims) *tensor.add_dims() = dim;
    tensor.set_dtype(dtype);
    return table_.tensors_size() - 1;
  }

  Op& Add(Op::Kind kind, const Operands& inputs, const Operands& outputs) {
    Op& op = *table_.add_ops();
    op.set_kind(kind);
    for (const auto& [name, tensor] : inputs) {
      Op::Operand& operand = *op.add_inputs();
      operand.set_name(name);
      operand.set_tensor(tensor);
    }
    for (const auto& [name, tensor] : outputs) {
      Op::Operand& operand = *op.add_outputs();
      operand.set_name(name);
      operand.set_tensor(tensor);
    }
    return op;
  }

  void SetRound(int number, bool back, Op& op) {
    op.mutable_round()->set_axis("expert");
    op.mutable_round()->set_ranks(kRanks);
    op.mutable_round()->set_number(number);
    op.mutable_round()->set_back(back);
    if (op.kind() != Op::EXCHANGE) return;
    op.mutable_exchange()->set_axis("expert");
    op.mutable_exchange()->set_forward(ALL_TO_ALL);
    op.mutable_exchange()->set_backward(ALL_TO_ALL);
  }

  int AddRound(int number, int before) {
    const int first = table_.tensors_size();
    const int received = Tensor("received", OfRows());
    SetRound(number, false,
             Add(Op::EXCHANGE, {{"x", rows_}, {"offsets", all_}},
                 {{"y", received}}));
    const int received_gates = Tensor("received gates", OfGates());
    SetRound(number, false,
             Add(Op::EXCHANGE, {{"x", gates_}, {"offsets", all_}},
                 {{"y", received_gates}}));
    const int grouped = Tensor("grouped", OfRows());
    const int gates = Tensor("grouped gates", OfGates());
    const int offsets =
        Tensor("offsets", {Count(Dim::STATISTICS, kExperts / kRanks + 1)}, I32);
    SetRound(
        number, false,
        Add(Op::REGROUP,
            {{"x", received}, {"gates", received_gates}, {"offsets", all_}},
            {{"rows", grouped},
             {"row_gates", gates},
             {"own_offsets", offsets}}));
    const int results = Tensor("results", OfResults());
    Add(Op::SWIGLU,
        {{"gate_up", grouped}, {"weights", gates}, {"offsets", offsets}},
        {{"y", results}});
    const int ungrouped = Tensor("ungrouped", OfResults());
    SetRound(number, false,
             Add(Op::UNGROUP, {{"x", results}, {"offsets", all_}},
                 {{"y", ungrouped}}));
    for (int t = first; t < table_.tensors_size(); ++t) {
      table_.mutable_tensors(t)->set_again(again_ && number > 0);
    }
    const int back = Tensor("back", OfResults());
    Operands inputs = {{"x", ungrouped}, {"offsets", all_}};
    if (before >= 0) inputs.push_back({"into", before});
    SetRound(number, true, Add(Op::EXCHANGE, inputs, {{"y", back}}));
    return back;
  }

  const bool again_;
  UnitTable table_;
  int rows_ = -1;
  int gates_ = -1;
  int own_ = -1;
  int all_ = -1;
};

ExchangePlaces PlacesOf(const UnitTable& table, const UnitPlaces& places,
                        int op, bool backward) {
  Instruction::Exchange exchange;
  exchange.set_op(op);
  exchange.set_backward(backward);
  return PlacesOfExchange(table, places, exchange);
}

TEST(PlaceRounds, EachRoundHasItsOwnPlacesButForWhatAllMakeInParts) {
  Table made;
  const UnitTable& table = made.table();
  const auto placed = TryPlaceUnit(table, UnitUse::kTraining);
  ASSERT_TRUE(placed.ok()) << placed.status();
  const UnitPlaces& places = *placed;
  // Rows, gates, back; of both rounds.
  const std::vector<int> ops = made.Find(Op::EXCHANGE, true);
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
    return PlaceUnit(Table(rounds, again).table(), UnitUse::kTraining);
  };
  const UnitPlaces one = place(1, true);
  const UnitPlaces two = place(2, true);
  const UnitPlaces four = place(4, true);
  EXPECT_EQ(one.recomputed_bytes, 0);
  EXPECT_GT(two.recomputed_bytes, 0);
  EXPECT_EQ(four.recomputed_bytes, two.recomputed_bytes);
  // No round but the first keeps anything.
  EXPECT_EQ(four.stash_bytes, one.stash_bytes);
  EXPECT_GT(place(4, false).stash_bytes, one.stash_bytes);
}

TEST(PlaceRounds, OpsBetweenTheExchangesOfARoundAreOfIt) {
  Table made(3);
  const std::vector<int> rounds = RoundsOfOps(made.table());
  // The offsets' all-gather, then six ops each.
  ASSERT_EQ(rounds.size(), 19u);
  EXPECT_EQ(rounds[0], 0);
  for (int op = 0; op < 18; ++op) EXPECT_EQ(rounds[op + 1], op / 6) << op;
  // A segment has ops of one round.
  for (const bool backward : {false, true}) {
    for (const Segment& segment : backward ? BackwardSegments(made.table())
                                           : ForwardSegments(made.table())) {
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
  EXPECT_EQ(Refusal(Table().table()), "");
  Table made;
  const int exchange = made.Find(Op::EXCHANGE, true)[0];
  const int regroup = made.Find(Op::REGROUP, true)[1];
  const auto changed = [&](int op, const auto& change) {
    UnitTable table = made.table();
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
                       ->set_count(kColumns + 1);
                 }),
         "EXCHANGE: makes received of rows, whose rows are others");
}

}  // namespace
}  // namespace troupe
