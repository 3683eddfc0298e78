#include "scheduler/layouts/lay_matrices.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/trained.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

// AdamW, and a group with Muon.
OptimizerSpec Muon() {
  OptimizerSpec optimizer;
  optimizer.set_name("adamw");
  optimizer.add_groups()->set_name("muon");
  return optimizer;
}

// Norms that AdamW trains, matrices that Muon does, and some that are frozen.
Unit UnitOf(int64_t norms, const std::vector<int64_t>& matrices, int64_t frozen,
            const OptimizerSpec& optimizer = Muon()) {
  Unit unit;
  const auto add = [&unit](const std::vector<int64_t>& shape, int rule,
                           bool is_frozen) {
    Parameter& parameter = *unit.add_parameters();
    parameter.set_name("p" + std::to_string(unit.parameters_size()));
    parameter.set_offset(unit.flat_elements());
    parameter.set_frozen(is_frozen);
    int64_t elements = 1;
    for (const int64_t size : shape) {
      *parameter.add_dims() = DimOf({{Dim::HIDDEN, size}});
      elements *= size;
    }
    unit.set_flat_elements(unit.flat_elements() + FlatAligned(elements));
    const int parts = unit.parts_size();
    const bool goes_on = parts > 0 && unit.parts(parts - 1).rule() == rule &&
                         unit.parts(parts - 1).frozen() == is_frozen;
    Unit::Part& part =
        goes_on ? *unit.mutable_parts(parts - 1) : *unit.add_parts();
    part.set_rule(rule);
    part.set_frozen(is_frozen);
    part.set_elements(part.elements() + FlatAligned(elements));
  };
  if (norms > 0) add({norms}, 0, false);
  for (const int64_t rows : matrices) add({rows, 10}, 1, false);
  if (frozen > 0) add({frozen, 3}, 0, true);
  for (Unit::Part& part : *unit.mutable_parts()) {
    part.set_whole_parameters(!part.frozen() &&
                              UpdatesMatrices(optimizer, part.rule()));
  }
  return unit;
}

// All that is trained, in slices over `ranks` ranks.
SlicedParts AllOver(int ranks, const Unit& unit) {
  return {.part = 0, .part_count = TrainedParts(unit), .ranks = ranks};
}

// Slices are even and tile what is trained; each matrix lies in one; parts tile
// the buffer and have the parameters that they had, which do not overlap.
TEST(LayMatrices, EachLiesInOneOfEvenSlices) {
  const std::vector<std::vector<int64_t>> cases = {
      {7, 7, 7, 7}, {10, 3, 3, 20, 5, 4}, {40, 1, 1, 1, 30, 30}, {9, 8}};
  int laid = 0;
  for (const std::vector<int64_t>& matrices : cases) {
    for (const int64_t norms : {0, 5, 100, 1000}) {
      for (const int64_t frozen : {0, 40}) {
        for (const int ranks : {1, 2, 3, 4}) {
          SCOPED_TRACE(testing::Message() << norms << " " << ranks);
          const Unit before = UnitOf(norms, matrices, frozen);
          Unit unit = before;
          ASSERT_TRUE(CheckMatrices(Muon(), unit).ok());
          if (!LayMatrices(Muon(), AllOver(ranks, unit), unit).ok()) continue;
          ++laid;
          ASSERT_EQ(unit.parts_size(), before.parts_size());
          EXPECT_EQ(FrozenRange(unit).size(), FrozenRange(before).size());
          const int64_t trained = TrainedElements(unit);
          if (ranks > 1) {
            EXPECT_EQ(trained % (ranks * kFlatAlignment), 0);
          }
          EXPECT_LE(trained, 2 * TrainedElements(before));
          std::vector<bool> taken(unit.flat_elements(), false);
          for (int p = 0; p < unit.parameters_size(); ++p) {
            const Parameter& parameter = unit.parameters(p);
            const Range lies = {parameter.offset(),
                                parameter.offset() + LocalElements(parameter)};
            for (int64_t e = lies.begin; e < lies.end; ++e) {
              EXPECT_FALSE(taken.at(e));
              taken[e] = true;
            }
            for (int part = 0; part < unit.parts_size(); ++part) {
              const Range range = RangeOfPart(unit, part);
              const Range was = RangeOfPart(before, part);
              const int64_t offset = before.parameters(p).offset();
              if (offset < was.begin || offset >= was.end) continue;
              EXPECT_GE(lies.begin, range.begin);
              EXPECT_LE(lies.end, range.end);
            }
            if (parameter.frozen() || parameter.dims_size() < 2) continue;
            const int64_t slice = trained / ranks;
            EXPECT_EQ(lies.begin / slice, (lies.end - 1) / slice);
          }
        }
      }
    }
  }
  EXPECT_GT(laid, 100);
}

// The same of slices by weights, which are lines and no more.
TEST(LayMatrices, EachLiesInOneOfUnlikeSlices) {
  int laid = 0;
  for (const std::vector<int>& weights : std::vector<std::vector<int>>{
           {3, 1}, {1, 3}, {5, 2, 1}, {1, 1, 6}, {7, 5}}) {
    for (const std::vector<int64_t>& matrices :
         std::vector<std::vector<int64_t>>{
             {7, 7, 7, 7}, {10, 3, 3, 20, 5, 4}, {9, 8}}) {
      Unit unit = UnitOf(100, matrices, 40);
      SlicedParts parts = AllOver(static_cast<int>(weights.size()), unit);
      parts.weights = weights;
      if (!LayMatrices(Muon(), parts, unit).ok()) continue;
      ++laid;
      const int64_t trained = TrainedElements(unit);
      for (const Parameter& parameter : unit.parameters()) {
        if (parameter.frozen() || parameter.dims_size() < 2) continue;
        EXPECT_EQ(parameter.offset() % kFlatAlignment, 0);
        int slices = 0;
        for (size_t r = 0; r < weights.size(); ++r) {
          const Range slice =
              WeightedLines(trained, weights, static_cast<int>(r));
          slices += parameter.offset() >= slice.begin &&
                    parameter.offset() + LocalElements(parameter) <= slice.end;
        }
        EXPECT_EQ(slices, 1) << parameter.name();
      }
    }
  }
  EXPECT_GE(laid, 12);
}

// Of parts that rest in slices over others, each lie in their own slices, which
// begin where the parts do.
TEST(LayMatrices, LaysSomePartsOfAUnit) {
  const std::vector<int64_t> matrices = {10, 3, 3, 20, 5, 4};
  const Unit before = UnitOf(100, matrices, 40);
  ASSERT_EQ(TrainedParts(before), 2);
  Unit unit = before;
  ASSERT_TRUE(
      LayMatrices(Muon(), {.part = 1, .part_count = 1, .ranks = 3}, unit).ok());
  EXPECT_EQ(unit.parts(0).elements(), before.parts(0).elements());
  EXPECT_EQ(FrozenRange(unit).size(), FrozenRange(before).size());
  const Range laid = RangeOfPart(unit, 1);
  EXPECT_EQ(laid.begin, RangeOfPart(before, 1).begin);
  EXPECT_EQ(laid.size() % (3 * kFlatAlignment), 0);
  for (int p = 0; p < unit.parameters_size(); ++p) {
    const Parameter& parameter = unit.parameters(p);
    const int64_t was = before.parameters(p).offset();
    if (was < laid.begin) {
      EXPECT_EQ(parameter.offset(), was);
      continue;
    }
    const int64_t begin = parameter.offset() - laid.begin;
    const int64_t end = begin + LocalElements(parameter);
    if (parameter.frozen()) {
      EXPECT_GE(begin, laid.size());
      continue;
    }
    const int64_t slice = laid.size() / 3;
    EXPECT_EQ(begin / slice, (end - 1) / slice);
  }
}

TEST(LayMatrices, LeavesOtherUnitsAsTheyAre) {
  Unit unit = UnitOf(100, {}, 40);
  const Unit before = unit;
  ASSERT_TRUE(LayMatrices(Muon(), AllOver(3, unit), unit).ok());
  EXPECT_EQ(unit.SerializeAsString(), before.SerializeAsString());
}

TEST(LayMatrices, RefusesSlicesThatAreMostlyGaps) {
  Unit unit = UnitOf(0, {100, 100}, 0);
  EXPECT_THAT(
      std::string(LayMatrices(Muon(), AllOver(8, unit), unit).message()),
      HasSubstr("parallelism.zero_size: whole matrices, which muon "
                "needs, do not fill the slices of 8 ranks"));
  EXPECT_THAT(
      std::string(LayMatrices(Muon(), AllOver(8, unit), unit).message()),
      HasSubstr("use a zero_size of at most 4"));
}

// Vectors too, which Adafactor trains as a whole; of all rules, the job's own.
TEST(LayMatrices, OfAdafactorVectorsAreWhole) {
  OptimizerSpec adafactor;
  adafactor.set_name("adafactor");
  adafactor.add_groups()->set_name("adafactor");
  for (const int ranks : {2, 3, 4}) {
    Unit unit = UnitOf(100, {10, 10, 10, 10, 10, 10, 10}, 0, adafactor);
    ASSERT_TRUE(CheckMatrices(adafactor, unit).ok());
    ASSERT_TRUE(LayMatrices(adafactor, AllOver(ranks, unit), unit).ok());
    const int64_t slice = TrainedElements(unit) / ranks;
    for (const Parameter& parameter : unit.parameters()) {
      EXPECT_EQ(parameter.offset() / slice,
                (parameter.offset() + LocalElements(parameter) - 1) / slice);
    }
  }
  Unit cut = UnitOf(8, {4}, 0, adafactor);
  Dim::Section::Cut& piece = *cut.mutable_parameters(0)
                                  ->mutable_dims(0)
                                  ->mutable_sections(0)
                                  ->add_cuts();
  piece.set_axis("tensor");
  piece.set_whole(16);
  EXPECT_THAT(std::string(CheckMatrices(adafactor, cut).message()),
              HasSubstr("optimizer.name: adafactor needs whole parameters, and "
                        "ranks have a part of p1 each"));
  Unit large = UnitOf(0, {100, 100}, 0, adafactor);
  EXPECT_THAT(
      std::string(LayMatrices(adafactor, AllOver(8, large), large).message()),
      HasSubstr("whole matrices, which adafactor needs"));
}

TEST(LayMatrices, RefusesWhatIsNoWholeMatrix) {
  Unit vector = UnitOf(0, {4}, 0);
  vector.mutable_parameters(0)->mutable_dims()->RemoveLast();
  EXPECT_THAT(std::string(CheckMatrices(Muon(), vector).message()),
              HasSubstr("optimizer.groups[0].name: muon trains matrices, and "
                        "p1 is a vector"));
  Unit cut = UnitOf(0, {4}, 0);
  Dim::Section::Cut& piece = *cut.mutable_parameters(0)
                                  ->mutable_dims(1)
                                  ->mutable_sections(0)
                                  ->add_cuts();
  piece.set_axis("tensor");
  piece.set_whole(20);
  EXPECT_THAT(std::string(CheckMatrices(Muon(), cut).message()),
              HasSubstr("muon needs whole parameters, and ranks have a part of "
                        "p1 each"));
}

}  // namespace
}  // namespace troupe
