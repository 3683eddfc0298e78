#include "worker/layers/new_layers.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_list.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

Dim Hidden(int64_t size) { return DimOf({{Dim::HIDDEN, size}}); }

// A product of 6 columns with a bias, behind a norm.
UnitList Units() {
  UnitBuilder unit(Unit::BLOCK,
                   {.shape = {.sequences = 2, .sequence_length = 3}});
  const int norm =
      unit.Norm({.x = unit.Input(Hidden(4)), .name = "ln", .output = "ln"}).y;
  unit.Output(unit.Linear({.x = norm,
                           .projections = {{"fc", Hidden(6)}},
                           .output = "fc",
                           .in_out = true,
                           .bias = true}));
  UnitList units;
  units.Append(std::move(unit));
  return units;
}

absl::Status Make(const UnitList& units) {
  const UnitTable& table = units.tables[0];
  const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
  return NewLayers({.table = table,
                    .places = places,
                    .unit = units.units[0],
                    .units = units.units})
      .status();
}

std::string Refusal(const std::function<void(UnitList&)>& change) {
  UnitList units = Units();
  change(units);
  const absl::Status status = Make(units);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(NewLayersTest, MakesOneForEachOp) {
  const UnitList units = Units();
  EXPECT_TRUE(Make(units).ok()) << Make(units);
}

TEST(NewLayersTest, RefusesAKindThatItDoesNotKnow) {
  UnitList units = Units();
  const UnitPlaces places = PlaceUnit(units.tables[0], UnitUse::kTraining);
  units.tables[0].mutable_ops(1)->set_kind(static_cast<Op::Kind>(99));
  EXPECT_EQ(NewLayers({.table = units.tables[0],
                       .places = places,
                       .unit = units.units[0],
                       .units = units.units})
                .status(),
            absl::InvalidArgumentError(
                "this worker has no layer for ops of kind 99; scheduler and "
                "worker must be of one build"));
}

TEST(NewLayersTest, RefusesParametersOfOtherShapes) {
  EXPECT_THAT(Refusal([](UnitList& units) {
                units.units[0]
                    .mutable_parameters(0)
                    ->mutable_dims(0)
                    ->mutable_sections(0)
                    ->set_count(5);
              }),
              HasSubstr("parameter ln.weight is F32[5] in the plan, but op 0, "
                        "NORM, needs F32, BF16 or F16 [4]"));
  EXPECT_THAT(Refusal([](UnitList& units) {
                units.units[0]
                    .mutable_parameters(2)
                    ->mutable_dims(1)
                    ->mutable_sections(0)
                    ->set_count(5);
              }),
              HasSubstr("parameter fc.weight is F32[4, 5]"));
  EXPECT_THAT(Refusal([](UnitList& units) {
                units.units[0].mutable_parameters(3)->set_dtype(I32);
              }),
              HasSubstr("parameter fc.bias is I32[6]"));
  EXPECT_THAT(
      Refusal([](UnitList& units) {
        units.tables[0].mutable_ops(0)->mutable_parameters()->Truncate(1);
      }),
      HasSubstr("op 0, NORM, has 1 parameters, but needs more"));
  EXPECT_THAT(
      Refusal([](UnitList& units) {
        units.tables[0].mutable_ops(1)->clear_parameters();
      }),
      HasSubstr("the weights of a LINEAR make 0 columns, but its output has"));
}

}  // namespace
}  // namespace troupe
