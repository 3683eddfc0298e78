#include "worker/rank/unit_state.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

Unit UnitOfTwo() {
  Unit unit;
  Parameter& weight = *unit.add_parameters();
  weight.set_name("weight");
  *weight.add_dims() = DimOf({{Dim::HIDDEN, 3}});
  *weight.add_dims() = DimOf({{Dim::HIDDEN, 2}});
  Parameter& bias = *unit.add_parameters();
  bias.set_name("bias");
  *bias.add_dims() = DimOf({{Dim::HIDDEN, 2}});
  bias.set_offset(16);
  unit.set_flat_elements(32);
  unit.add_parts()->set_elements(32);
  return unit;
}

TEST(UnitState, AdamWHasTwoMomentsBehindOneAnother) {
  OptimizerSpec adamw;
  adamw.set_name("adamw");
  std::vector<float> parameters(32);
  std::vector<float> moments(64);
  char* p = reinterpret_cast<char*>(parameters.data());
  char* m = reinterpret_cast<char*>(moments.data());
  const std::vector<StateTensor> tensors = UnitStateTensors(
      adamw, UnitOfTwo(), {.parameters = p, .optimizer_state = m});
  ASSERT_EQ(tensors.size(), 6u);
  EXPECT_EQ(tensors[0].name, "weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(tensors[0].elements, 6);
  EXPECT_EQ(tensors[0].data.memory(), p);
  EXPECT_EQ(tensors[0].boxes.at(0).begin, 0);
  EXPECT_EQ(tensors[1].data.memory(), p);
  EXPECT_EQ(tensors[1].boxes.at(0).begin, 16);
  EXPECT_EQ(tensors[3].name, "optimizer.exp_avg.bias");
  EXPECT_EQ(tensors[3].data.memory(), m);
  EXPECT_EQ(tensors[3].boxes.at(0).begin, 16);
  EXPECT_EQ(tensors[5].name, "optimizer.exp_avg_sq.bias");
  EXPECT_EQ(tensors[5].data.memory(), m + 32 * 4);
}

// Of rows, of columns, and of the bias: each state behind the one before. A
// copy of any range has what of them belongs to it, wherever the range is cut.
TEST(UnitState, AdafactorHasRowsAndColumns) {
  OptimizerSpec adafactor;
  adafactor.set_name("adafactor");
  std::vector<float> parameters(32), moments(7);
  char* p = reinterpret_cast<char*>(parameters.data());
  char* m = reinterpret_cast<char*>(moments.data());
  const std::vector<StateTensor> tensors = UnitStateTensors(
      adafactor, UnitOfTwo(), {.parameters = p, .optimizer_state = m});
  ASSERT_EQ(tensors.size(), 5u);
  const std::vector<std::pair<std::string, int64_t>> expected = {
      {"exp_avg_sq_row.weight", 3},
      {"exp_avg_sq_col.weight", 2},
      {"exp_avg_sq.bias", 2}};
  const std::vector<int> begins = {0, 3, 5};
  for (int s = 0; s < 3; ++s) {
    const StateTensor& tensor = tensors[2 + s];
    EXPECT_EQ(tensor.name, "optimizer." + expected[s].first);
    EXPECT_EQ(tensor.shape, std::vector<int64_t>{expected[s].second});
    EXPECT_EQ(tensor.elements, expected[s].second);
    ASSERT_EQ(tensor.boxes.size(), 1u);
    EXPECT_EQ(tensor.boxes[0].begin, 0);
    EXPECT_EQ(tensor.data.memory(), m + begins[s] * 4);
  }
  for (int64_t cut = 0; cut <= 32; ++cut) {
    std::map<std::string, std::vector<int>> times;
    for (const Range& range : {Range{0, cut}, Range{cut, 32}}) {
      for (const StateTensor& tensor : UnitStateTensors(
               adafactor, UnitOfTwo(),
               {.parameters = p, .optimizer_state = m, .holds = range})) {
        std::vector<int>& seen = times[tensor.name];
        seen.resize(tensor.shape[0] * (tensor.shape.size() > 1 ? 2 : 1));
        for (const SliceRun& run :
             RunsWithin(tensor, 0, static_cast<int64_t>(seen.size()))) {
          EXPECT_GE(run.local, 0);
          for (int64_t i = 0; i < run.count; ++i) ++seen[run.whole + i];
        }
      }
    }
    for (const auto& [name, seen] : times) {
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1)) << name << " " << cut;
    }
    EXPECT_EQ(times.size(), 5u);
  }
}

// Elements 1 to 16: the end of a row, two rows, and the beginning of the bias.
TEST(UnitState, OfARangeIsWhatLiesInIt) {
  std::vector<float> held(16);
  char* p = reinterpret_cast<char*>(held.data());
  const std::vector<StateTensor> tensors = UnitStateTensors(
      OptimizerSpec(), UnitOfTwo(), {.parameters = p, .holds = Range{1, 17}},
      {}, Range{1, 17});
  ASSERT_EQ(tensors.size(), 2u);
  const StateTensor& weight = tensors[0];
  EXPECT_EQ(weight.elements, 5);
  ASSERT_EQ(weight.boxes.size(), 2u);
  EXPECT_EQ(FormatBox(weight.boxes[0].whole), "[0:1, 1:2]");
  EXPECT_EQ(weight.boxes[0].begin, 0);
  EXPECT_EQ(FormatBox(weight.boxes[1].whole), "[1:3, 0:2]");
  EXPECT_EQ(weight.boxes[1].begin, 1);
  const StateTensor& bias = tensors[1];
  ASSERT_EQ(bias.boxes.size(), 1u);
  EXPECT_EQ(FormatBox(bias.boxes[0].whole), "[0:1]");
  EXPECT_EQ(bias.boxes[0].begin, 15);
  EXPECT_TRUE(UnitStateTensors(OptimizerSpec(), UnitOfTwo(), {.parameters = p},
                               {}, Range{6, 16})
                  .empty());
}

// Weights of experts, whose columns two ranks share: each element of the whole
// is in one run, at its place, whichever window asks for it.
TEST(UnitState, ThreeDimsInWindows) {
  constexpr int64_t kExperts = 3, kRows = 4, kColumns = 5, kRanks = 2;
  Mesh mesh;
  Axis& axis = *mesh.add_axes();
  axis.set_name("tensor");
  axis.set_size(kRanks);
  Unit unit;
  Parameter& weight = *unit.add_parameters();
  weight.set_name("experts");
  *weight.add_dims() = DimOf({{Dim::EXPERTS, kExperts}});
  *weight.add_dims() = DimOf({{Dim::INTERMEDIATE, kRows / kRanks}});
  *weight.add_dims() = DimOf({{Dim::HIDDEN, kColumns}});
  Dim::Section::Cut& cut =
      *weight.mutable_dims(1)->mutable_sections(0)->add_cuts();
  cut.set_axis("tensor");
  cut.set_whole(kRows);
  unit.set_flat_elements(32);
  std::vector<float> held(32);
  std::vector<int64_t> places(kExperts * kRows * kColumns, -1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<StateTensor> tensors =
        UnitStateTensors(OptimizerSpec(), unit,
                         {.parameters = reinterpret_cast<char*>(held.data())},
                         {.mesh = &mesh, .rank = rank});
    ASSERT_EQ(tensors.size(), 1u);
    EXPECT_EQ(tensors[0].elements, kExperts * kRows * kColumns / kRanks);
    for (int64_t begin = 0; begin < 60; begin += 7) {
      for (const SliceRun& run :
           RunsWithin(tensors[0], begin, std::min<int64_t>(60, begin + 7))) {
        for (int64_t i = 0; i < run.count; ++i) {
          EXPECT_EQ(places[run.whole + i], -1) << "twice";
          places[run.whole + i] = run.local + i;
        }
      }
    }
  }
  for (int64_t e = 0; e < kExperts; ++e) {
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t column = 0; column < kColumns; ++column) {
        EXPECT_EQ(
            places[(e * kRows + row) * kColumns + column],
            (e * kRows / kRanks + row % (kRows / kRanks)) * kColumns + column);
      }
    }
  }
}

TEST(UnitState, SgdHasMomentumOrNothing) {
  OptimizerSpec sgd;
  sgd.set_name("sgd");
  std::vector<float> flat(32);
  char* data = reinterpret_cast<char*>(flat.data());
  const UnitFlatBuffers memory = {.parameters = data, .optimizer_state = data};
  EXPECT_EQ(UnitStateTensors(sgd, UnitOfTwo(), memory).size(), 2u);
  sgd.set_momentum(0.9);
  const std::vector<StateTensor> tensors =
      UnitStateTensors(sgd, UnitOfTwo(), memory);
  ASSERT_EQ(tensors.size(), 4u);
  EXPECT_EQ(tensors[2].name, "optimizer.momentum.weight");
  // Where the rank has none in memory.
  EXPECT_EQ(UnitStateTensors(sgd, UnitOfTwo(), {.parameters = data}).size(),
            2u);
}

}  // namespace
}  // namespace troupe
