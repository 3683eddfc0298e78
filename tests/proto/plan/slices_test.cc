#include "proto/plan/slices.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

Mesh MeshOf(int tensor) {
  Mesh mesh;
  Axis& data = *mesh.add_axes();
  data.set_name("data");
  data.set_size(2);
  Axis& axis = *mesh.add_axes();
  axis.set_name("tensor");
  axis.set_size(tensor);
  return mesh;
}

Dim Cut(Dim dim, int tensor) {
  for (Dim::Section& section : *dim.mutable_sections()) {
    if (section.kind() == Dim::HIDDEN) continue;
    Dim::Section::Cut& cut = *section.add_cuts();
    cut.set_axis("tensor");
    cut.set_whole(section.count());
    section.set_count(LargestPiece(cut.whole(), tensor));
  }
  return dim;
}

// How often the ranks of one replica hold each element, counted by the runs in
// which they would copy it; and no rank two in one place.
std::vector<int> Held(const Parameter& parameter, int tensor) {
  const std::vector<int64_t> shape = WholeShape(parameter);
  int64_t elements = 1;
  for (const int64_t dim : shape) elements *= dim;
  std::vector<int> held(elements, 0);
  const Mesh mesh = MeshOf(tensor);
  for (int rank = 0; rank < tensor; ++rank) {
    std::vector<int> local(LocalElements(parameter), 0);
    for (const SliceRun& run :
         RunsOf(parameter, {.mesh = &mesh, .rank = rank})) {
      for (int64_t i = 0; i < run.count; ++i) {
        ++held.at(run.whole + i);
        EXPECT_EQ(++local.at(run.local + i), 1);
      }
    }
  }
  return held;
}

TEST(Slices, OfAllRanksTileTheTensor) {
  for (int tensor = 1; tensor <= 9; ++tensor) {
    for (int count = 1; count <= 20; ++count) {
      if (count < tensor && tensor % count != 0) continue;
      Parameter rows;
      *rows.add_dims() = Cut(DimOf({{Dim::VOCABULARY, count}}), tensor);
      *rows.add_dims() = DimOf({{Dim::HIDDEN, 5}});
      Parameter columns;
      *columns.add_dims() = DimOf({{Dim::HIDDEN, 3}});
      *columns.add_dims() = Cut(DimOf({{Dim::HEADS, count, 2},
                                       {Dim::KEY_VALUE_HEADS, count, 2},
                                       {Dim::KEY_VALUE_HEADS, count, 2}}),
                                tensor);
      Parameter bias;
      *bias.add_dims() = columns.dims(1);
      for (const Parameter& parameter : {rows, columns, bias}) {
        for (const int held : Held(parameter, tensor)) {
          EXPECT_EQ(held, CopiesOfPiece(count, tensor))
              << count << " over " << tensor;
        }
      }
    }
  }
}

TEST(Slices, AllRanksHaveAsMuchMemory) {
  Parameter table;
  *table.add_dims() = Cut(DimOf({{Dim::VOCABULARY, 61}}), 4);
  *table.add_dims() = DimOf({{Dim::HIDDEN, 8}});
  EXPECT_EQ(WholeShape(table), (std::vector<int64_t>{61, 8}));
  EXPECT_EQ(LocalShape(table), (std::vector<int64_t>{16, 8}));
  const Mesh mesh = MeshOf(4);
  // Of data replica 1.
  const std::vector<ParameterBox> boxes =
      BoxesOf(table, {.mesh = &mesh, .rank = 4 + 3});
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].whole[0], (Range{46, 61}));
  EXPECT_EQ(boxes[0].local_begin[0], 0);
}

Dim::Section::Cut CutOver(const char* axis, int64_t whole, bool rows) {
  Dim::Section::Cut cut;
  cut.set_axis(axis);
  cut.set_whole(whole);
  cut.set_rows(rows);
  return cut;
}

// [2, 12, 5] over data 2 as samples are cut, and the rows of both over tensor
// 3: of data 1, a sample's positions 6 to 11, of which each has four rows.
TEST(Slices, RowsFollowFromAllCuts) {
  TensorSpec tensor;
  *tensor.add_dims() = DimOf({{Dim::BATCH, 2}});
  *tensor.add_dims() = DimOf({{Dim::SEQUENCE, 2}});
  *tensor.add_dims() = DimOf({{Dim::HIDDEN, 5}});
  Dim::Section& positions = *tensor.mutable_dims(1)->mutable_sections(0);
  *positions.add_cuts() = CutOver("data", 12, false);
  *positions.add_cuts() = CutOver("tensor", 6, true);
  const Mesh mesh = MeshOf(3);
  const auto runs = [&](int tensor_place) {
    std::string text;
    for (const SliceRun& run :
         RowsOn(tensor, {.mesh = &mesh, .rank = 3 + tensor_place})) {
      absl::StrAppend(&text, run.local, "+", run.count, " are ", run.whole,
                      "; ");
    }
    return text;
  };
  EXPECT_EQ(runs(0), "0+4 are 6; ");
  EXPECT_EQ(runs(1), "0+2 are 10; 2+2 are 18; ");
  EXPECT_EQ(runs(2), "0+4 are 20; ");
  EXPECT_EQ(SectionPiece(positions, {.mesh = &mesh, .rank = 3}),
            (Range{6, 12}));
}

// Eight samples of four positions over data 2, then over tensor 4, and
// positions whole or, in front of both, cut in two.
TEST(Slices, RowsAreThoseOfSamplesThatAreCut) {
  TensorSpec tensor;
  *tensor.add_dims() = DimOf({{Dim::BATCH, 1}});
  *tensor.add_dims() = DimOf({{Dim::SEQUENCE, 4}});
  *tensor.add_dims() = DimOf({{Dim::HIDDEN, 5}});
  Dim::Section& samples = *tensor.mutable_dims(0)->mutable_sections(0);
  *samples.add_cuts() = CutOver("data", 8, false);
  *samples.add_cuts() = CutOver("tensor", 4, false);
  const Mesh mesh = MeshOf(4);
  std::vector<int> had(8 * 4, 0);
  for (int rank = 0; rank < 8; ++rank) {
    const std::vector<SliceRun> runs =
        RowsOn(tensor, {.mesh = &mesh, .rank = rank});
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].whole, 4 * rank);
    EXPECT_EQ(runs[0].count, 4);
    for (int i = 0; i < 4; ++i) ++had.at(runs[0].whole + i);
  }
  EXPECT_EQ(had, std::vector<int>(8 * 4, 1));
  // Two samples each, of which tensor 2 has two, and of each a half over data.
  samples.set_count(2);
  samples.clear_cuts();
  *samples.add_cuts() = CutOver("tensor", 8, false);
  Dim::Section& positions = *tensor.mutable_dims(1)->mutable_sections(0);
  *positions.add_cuts() = CutOver("data", 4, false);
  positions.set_count(2);
  const std::vector<SliceRun> runs =
      RowsOn(tensor, {.mesh = &mesh, .rank = 4 + 2});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].whole, 4 * 4 + 2);
  EXPECT_EQ(runs[0].count, 2);
  EXPECT_EQ(runs[1].whole, 5 * 4 + 2);
  EXPECT_EQ(runs[1].local, 2);
}

// [2, 8, 5] of 48 positions over tensor 3 in zigzag order, then over data 2:
// tensor 1 has positions 8 to 15 and 32 to 39, of which data 1 the second run.
TEST(Slices, ZigzagGivesOnePieceFromEitherEnd) {
  TensorSpec tensor;
  *tensor.add_dims() = DimOf({{Dim::BATCH, 2}});
  *tensor.add_dims() = DimOf({{Dim::SEQUENCE, 8}});
  *tensor.add_dims() = DimOf({{Dim::HIDDEN, 5}});
  Dim::Section& positions = *tensor.mutable_dims(1)->mutable_sections(0);
  *positions.add_cuts() = CutOver("tensor", 48, false);
  positions.mutable_cuts(0)->set_zigzag(true);
  const Mesh mesh = MeshOf(3);
  using Runs = std::vector<Range>;
  positions.set_count(16);
  EXPECT_EQ(SectionRuns(positions, {.mesh = &mesh, .rank = 0}),
            (Runs{{0, 8}, {40, 48}}));
  EXPECT_EQ(SectionRuns(positions, {.mesh = &mesh, .rank = 1}),
            (Runs{{8, 16}, {32, 40}}));
  // The two in the middle are one.
  EXPECT_EQ(SectionRuns(positions, {.mesh = &mesh, .rank = 2}),
            (Runs{{16, 32}}));
  *positions.add_cuts() = CutOver("data", 16, false);
  positions.set_count(8);
  EXPECT_EQ(SectionRuns(positions, {.mesh = &mesh, .rank = 1}),
            (Runs{{8, 16}}));
  EXPECT_EQ(SectionRuns(positions, {.mesh = &mesh, .rank = 4}),
            (Runs{{32, 40}}));
  const std::vector<SliceRun> rows =
      RowsOn(tensor, {.mesh = &mesh, .rank = 4});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].whole, 32);
  EXPECT_EQ(rows[1].whole, 48 + 32);
  EXPECT_EQ(rows[1].local, 8);
  EXPECT_EQ(rows[1].count, 8);
}

TEST(Slices, EachAxisCutsWhatTheOneBeforeHasLeft) {
  Dim::Section heads;
  heads.set_kind(Dim::HEADS);
  heads.set_count(2);
  *heads.add_cuts() = CutOver("tensor", 12, false);
  *heads.add_cuts() = CutOver("data", 4, false);
  const Mesh mesh = MeshOf(3);
  EXPECT_EQ(WholeCount(heads), 12);
  // Data 1, tensor 2.
  EXPECT_EQ(SectionPiece(heads, {.mesh = &mesh, .rank = 5}), (Range{10, 12}));
  EXPECT_EQ(SectionPiece(heads, {.mesh = &mesh, .rank = 2}), (Range{8, 10}));
}

TEST(Slices, WithoutAMeshNothingIsCut) {
  Parameter table;
  *table.add_dims() = DimOf({{Dim::VOCABULARY, 7}});
  *table.add_dims() = DimOf({{Dim::HIDDEN, 4}});
  const std::vector<SliceRun> runs = RunsOf(table, {});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].count, 28);
}

}  // namespace
}  // namespace troupe
