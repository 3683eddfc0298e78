// Where a tensor has several readers, and what becomes of its gradient.
#include "gtest/gtest.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

Dim Hidden() { return DimOf({{Dim::HIDDEN, 8}}); }

UnitBuilder Block() {
  return UnitBuilder(
      Unit::BLOCK,
      {.index = 1, .shape = {.sequences = 1, .sequence_length = 4}});
}

int Linear(UnitBuilder& unit, int x, const std::string& name) {
  return unit.Linear({.x = x,
                      .projections = {{name, Hidden()}},
                      .output = name,
                      .init_std = 1});
}

std::vector<Op::Kind> KindsOf(const UnitTable& table) {
  std::vector<Op::Kind> kinds;
  for (const Op& op : table.ops()) kinds.push_back(op.kind());
  return kinds;
}

TEST(ForkReaders, PartsTwoProductsOfOneInput) {
  UnitBuilder unit = Block();
  const int x = unit.Input(Hidden());
  const int a = Linear(unit, x, "a");
  const int b = Linear(unit, x, "b");
  unit.Output(unit.Add({.x = a, .residual = b}));
  const auto built = std::move(unit).Build();
  EXPECT_EQ(KindsOf(built.table),
            (std::vector<Op::Kind>{Op::FORK, Op::LINEAR, Op::LINEAR, Op::ADD}));
  EXPECT_TRUE(TryPlaceUnit(built.table, UnitUse::kTraining).ok());
}

TEST(ForkReaders, LeavesNormsThatStandBeforeTheOtherReader) {
  UnitBuilder unit = Block();
  const int x = unit.Input(Hidden());
  const int y =
      unit.Norm({.x = x, .name = "n", .output = "n", .epsilon = 1e-5}).y;
  unit.Output(unit.Add({.x = Linear(unit, y, "a"), .residual = x}));
  const auto built = std::move(unit).Build();
  EXPECT_EQ(KindsOf(built.table),
            (std::vector<Op::Kind>{Op::NORM, Op::LINEAR, Op::ADD}));
}

TEST(ForkReaders, AnOutputOfTwoUnitsIsOneValueWithTwoGradients) {
  UnitBuilder unit = Block();
  const int y = Linear(unit, unit.Input(Hidden()), "a");
  unit.Output(y);
  unit.Output(y);
  const auto built = std::move(unit).Build();
  EXPECT_EQ(built.outputs, (std::vector<int>{0, 1}));
  const UnitPlaces places = PlaceUnit(built.table, UnitUse::kTraining);
  const OpPlaces& fork = places.ops[1];
  EXPECT_TRUE(AreSamePlace(fork.outputs[0], fork.outputs[1]));
  EXPECT_EQ(fork.output_gradients[0].memory, UnitMemory::kOutputGradient);
  EXPECT_EQ(fork.output_gradients[1].port, 1);
  // Others' gradients stay as they are.
  EXPECT_NE(fork.input_gradients[0].memory, UnitMemory::kOutputGradient);
  // One value is kept, though two units read it.
  EXPECT_EQ(places.activation_bytes, 4 * 8 * 4);
}

TEST(ForkReaders, CopiesTheGradientOfAnInputThatIsAnothersToo) {
  UnitBuilder unit = Block();
  Unit::Source source;
  const int x = unit.Input(Hidden());
  const int other = unit.Input(source, unit.table().tensors(x));
  unit.Output(Linear(unit, unit.Add({.x = x, .residual = other}), "a"));
  const auto built = std::move(unit).Build();
  EXPECT_EQ(KindsOf(built.table),
            (std::vector<Op::Kind>{Op::FORK, Op::FORK, Op::ADD, Op::LINEAR}));
  const auto places = TryPlaceUnit(built.table, UnitUse::kTraining);
  ASSERT_TRUE(places.ok()) << places.status();
  EXPECT_EQ(places->ops[0].input_gradients[0].memory,
            UnitMemory::kInputGradient);
  EXPECT_FALSE(AreSamePlace(places->ops[0].input_gradients[0],
                            places->ops[1].input_gradients[0]));
}

TEST(ForkReaders, WithoutOneTheGradientsCannotBePlaced) {
  UnitBuilder unit = Block();
  const int x = unit.Input(Hidden());
  const int a = Linear(unit, x, "a");
  const int b = Linear(unit, a, "b");
  unit.Output(unit.Add({.x = b, .residual = a}));
  UnitTable table = std::move(unit).Build().table;
  // Both read the first product.
  UnitTable wrong;
  *wrong.mutable_tensors() = table.tensors();
  int product = -1;
  for (const Op& op : table.ops()) {
    if (op.kind() == Op::FORK) continue;
    *wrong.add_ops() = op;
    if (product < 0) product = op.outputs(0).tensor();
  }
  wrong.mutable_ops(1)->mutable_inputs(0)->set_tensor(product);
  wrong.mutable_ops(2)->mutable_inputs(1)->set_tensor(product);
  const auto places = TryPlaceUnit(wrong, UnitUse::kTraining);
  ASSERT_FALSE(places.ok());
  EXPECT_EQ(places.status().message(),
            "op 1 LINEAR: it reads \"a\", which somebody behind it reads too, "
            "without a FORK between them");
}

}  // namespace
}  // namespace troupe
