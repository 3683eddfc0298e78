#include "proto/plan/made_again.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/model.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/tensor_spec.h"
#include "tests/proto/plan/gpt2_spec.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

UnitTable TableOf(const ModelSpec& model, int unit) {
  const UnitList list = *ModelUnits(
      model, {.sequences = 2, .sequence_length = 5, .dropout = 0.1});
  return list.tables[list.units[unit].table()];
}

// Keeps nothing within the unit.
UnitTable KeepsInput(UnitTable table) {
  for (TensorSpec& tensor : *table.mutable_tensors()) tensor.set_again(true);
  return table;
}

UnitTable MakesAgain(UnitTable table, const std::string& name) {
  for (TensorSpec& tensor : *table.mutable_tensors()) {
    if (tensor.name() == name) tensor.set_again(true);
  }
  return table;
}

// "NORM LINEAR ATTENTION", an op that runs apart with a star.
std::string OpsAgain(const UnitTable& table) {
  const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
  std::string ops;
  for (int op = 0; op < table.ops_size(); ++op) {
    const Again again = places.ops[op].again;
    if (again == Again::kNo) continue;
    ops += (ops.empty() ? "" : " ") + Op::Kind_Name(table.ops(op).kind()) +
           (again == Again::kApart ? "*" : "");
  }
  return ops;
}

TEST(MadeAgain, NothingWhereAllIsKept) {
  const UnitTable block = TableOf(Gpt2(2, 24, 3), 1);
  EXPECT_EQ(OpsAgain(block), "");
  EXPECT_EQ(PlaceUnit(block, UnitUse::kTraining).recomputed_bytes, 0);
}

// Without the last product and sum: no backward pass reads what they make.
TEST(MadeAgain, FewestOpsOfAUnitThatKeepsItsInput) {
  EXPECT_EQ(OpsAgain(KeepsInput(TableOf(Gpt2(2, 24, 3), 1))),
            "NORM LINEAR ATTENTION LINEAR DROPOUT NORM LINEAR GELU");
  EXPECT_EQ(OpsAgain(KeepsInput(TableOf(Llama({}), 1))),
            "NORM LINEAR ROPE ATTENTION LINEAR NORM LINEAR SWIGLU");
  EXPECT_EQ(OpsAgain(KeepsInput(TableOf(Gpt2(2, 24, 3), 3))),
            "NORM LINEAR CROSS_ENTROPY");
  EXPECT_EQ(OpsAgain(KeepsInput(TableOf(Gpt2(2, 24, 3), 0))), "");
}

TEST(MadeAgain, FromWhatForwardHasLeft) {
  const UnitTable block = TableOf(Gpt2(2, 24, 3), 1);
  EXPECT_EQ(OpsAgain(MakesAgain(block, "ln_2")), "NORM*");
  EXPECT_EQ(OpsAgain(MakesAgain(block, "gelu")), "GELU*");
  EXPECT_EQ(OpsAgain(MakesAgain(block, "ln_1")), "NORM");
  // From the norm, without the products before that.
  EXPECT_EQ(OpsAgain(MakesAgain(block, "mlp.c_fc")), "LINEAR GELU");
  EXPECT_EQ(OpsAgain(MakesAgain(MakesAgain(block, "mlp.c_fc"), "ln_2")),
            "NORM* LINEAR GELU");
}

// Each op that runs again finds its inputs, and the backward passes find all
// that they read, made by the op that makes it.
TEST(MadeAgain, NothingIsOverwrittenBeforeItsLastReader) {
  std::vector<UnitTable> tables;
  for (const ModelSpec& model : {Gpt2(2, 24, 3), Llama({})}) {
    for (const int unit : {1, 3}) {
      const UnitTable table = TableOf(model, unit);
      tables.push_back(KeepsInput(table));
      for (const TensorSpec& tensor : table.tensors()) {
        tables.push_back(MakesAgain(table, tensor.name()));
      }
    }
  }
  for (const UnitTable& table : tables) {
    const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
    std::vector<OpRules> rules;
    for (const Op& op : table.ops()) rules.push_back(RulesOf({table, op}));
    std::map<int64_t, std::pair<int64_t, int>>
        made;  // end and tensor, by begin
    const auto place_of = [&](int tensor) {
      for (int op = 0; op < table.ops_size(); ++op) {
        for (int i = 0; i < table.ops(op).inputs_size(); ++i) {
          if (table.ops(op).inputs(i).tensor() != tensor) continue;
          return places.ops[op].inputs[i].InRecompute();
        }
        for (int i = 0; i < table.ops(op).outputs_size(); ++i) {
          if (table.ops(op).outputs(i).tensor() != tensor) continue;
          return places.ops[op].outputs[i].InRecompute();
        }
      }
      return TensorPlace();
    };
    const auto expect_there = [&](int tensor) {
      const TensorPlace place = place_of(tensor);
      if (place.memory != UnitMemory::kRecomputed) {
        EXPECT_TRUE(place.memory == UnitMemory::kStash ||
                    place.memory == UnitMemory::kInput ||
                    place.memory == UnitMemory::kBatch)
            << table.tensors(tensor).name();
        return;
      }
      ASSERT_EQ(made.count(place.offset_bytes), 1u);
      int there = made[place.offset_bytes].second;
      // Under a fused mask, whose reader applies it.
      const int maker = MakerOf(table, tensor);
      if (table.ops(maker).kind() == Op::DROPOUT) {
        there = there == table.ops(maker).inputs(0).tensor() ? tensor : there;
      }
      EXPECT_EQ(there, tensor) << table.tensors(tensor).name();
    };
    const auto make = [&](int tensor) {
      const TensorPlace place = place_of(tensor);
      if (place.memory != UnitMemory::kRecomputed) return;
      const int64_t end = place.offset_bytes + BytesOf(table.tensors(tensor));
      EXPECT_LE(end, places.recomputed_bytes);
      for (auto it = made.begin(); it != made.end();) {
        const bool apart =
            it->first >= end || it->second.first <= place.offset_bytes;
        it = apart ? std::next(it) : made.erase(it);
      }
      made[place.offset_bytes] = {end, tensor};
    };
    for (int op = 0; op < table.ops_size(); ++op) {
      const Again again = places.ops[op].again;
      const bool fused = table.ops(op).fused() && again == Again::kAsForward;
      if (!fused) {
        for (const int tensor : ReadAgain(table, op, rules[op], again)) {
          expect_there(tensor);
        }
      }
      if (again == Again::kNo) continue;
      if (table.ops(op).kind() == Op::DROPOUT && fused) continue;
      for (const Op::Operand& output : table.ops(op).outputs()) {
        make(output.tensor());
      }
    }
    const std::vector<bool> read = ReadByBackward(table, rules);
    for (int t = 0; t < table.tensors_size(); ++t) {
      if (read[t]) expect_there(t);
    }
  }
}

}  // namespace
}  // namespace troupe
