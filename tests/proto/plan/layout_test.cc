#include "proto/plan/layout.h"

#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/mesh.h"

namespace troupe {
namespace {

Mesh TwoAxes(int a, int b) {
  Mesh mesh;
  Axis* first = mesh.add_axes();
  first->set_name("a");
  first->set_size(a);
  Axis* second = mesh.add_axes();
  second->set_name("b");
  second->set_size(b);
  return mesh;
}

void AddAxis(Layout& layout, const std::string& axis,
             Layout::Placement placement, int dim = 0) {
  Layout::AxisLayout* added = layout.add_axes();
  added->set_axis(axis);
  added->set_placement(placement);
  added->set_dim(dim);
}

TEST(Layout, EvenPiecesTileEveryRange) {
  for (int64_t size = 0; size <= 40; ++size) {
    for (int count = 1; count <= 9; ++count) {
      int64_t end = 0;
      for (int index = 0; index < count; ++index) {
        const Range piece = EvenPiece(size, {.index = index, .count = count});
        EXPECT_EQ(piece.begin, end);
        EXPECT_GE(piece.size(), size / count);
        EXPECT_LE(piece.size(), size / count + 1);
        end = piece.end;
      }
      EXPECT_EQ(end, size);
    }
  }
}

TEST(Layout, WeightedSlicesTileWhatIsLarge) {
  const std::vector<int32_t> weights(1024, 1'000'000);
  const int64_t elements = int64_t{1} << 46;
  const std::vector<Range> all = AllWeightedLines(elements, weights);
  ASSERT_EQ(all.size(), weights.size());
  int64_t end = 0;
  for (int index = 0; index < 1024; ++index) {
    const Range slice = WeightedLines(elements, weights, index);
    EXPECT_EQ(slice, all[index]);
    EXPECT_EQ(slice.begin, end);
    EXPECT_EQ(slice.size(), elements / 1024);
    end = slice.end;
  }
  EXPECT_EQ(end, elements);
  EXPECT_EQ(WeightedLines(100, {3, 1}, 0), (Range{0, 80}));
  EXPECT_EQ(WeightedLines(100, {3, 1}, 1), (Range{80, 100}));
}

// Counts how many ranks hold each element of a small matrix.
std::vector<int> Cover(const Layout& layout, const Mesh& mesh,
                       const std::vector<int64_t>& shape) {
  std::vector<int> holders(shape[0] * shape[1], 0);
  for (int rank = 0; rank < MeshSize(mesh); ++rank) {
    const std::vector<Range> slice = SliceOf(layout, mesh, rank, shape);
    for (int64_t i = slice[0].begin; i < slice[0].end; ++i) {
      for (int64_t j = slice[1].begin; j < slice[1].end; ++j) {
        ++holders[i * shape[1] + j];
      }
    }
  }
  return holders;
}

TEST(Layout, SlicesOfAllRanksTileTheTensorExactlyOnce) {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 3; ++b) {
      for (int64_t rows = 1; rows <= 7; ++rows) {
        for (int64_t columns = 1; columns <= 5; ++columns) {
          for (int dim_a = 0; dim_a < 2; ++dim_a) {
            for (int dim_b = 0; dim_b < 2; ++dim_b) {
              const Mesh mesh = TwoAxes(a, b);
              Layout layout;
              AddAxis(layout, "a", Layout::SHARD, dim_a);
              AddAxis(layout, "b", Layout::SHARD, dim_b);
              for (const int holders : Cover(layout, mesh, {rows, columns})) {
                ASSERT_EQ(holders, 1);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Layout, ReplicatingAxesMultiplyTheHolders) {
  Layout layout;
  AddAxis(layout, "a", Layout::SHARD, 1);
  for (const int holders : Cover(layout, TwoAxes(2, 3), {4, 5})) {
    EXPECT_EQ(holders, 3);
  }
}

TEST(Layout, ChecksAndTexts) {
  const Mesh mesh = TwoAxes(2, 2);
  Layout layout;
  EXPECT_EQ(LayoutText(layout), "Replicate");
  AddAxis(layout, "a", Layout::SHARD, 1);
  AddAxis(layout, "b", Layout::PARTIAL);
  EXPECT_EQ(LayoutText(layout), "Shard(1) on a, Partial on b");
  EXPECT_TRUE(IsPartial(layout));
  EXPECT_TRUE(CheckLayout(layout, mesh, {3, 3}).ok());
  EXPECT_FALSE(CheckLayout(layout, mesh, {3}).ok());
  AddAxis(layout, "a", Layout::REPLICATE);
  EXPECT_FALSE(CheckLayout(layout, mesh, {3, 3}).ok());
  Layout unknown;
  AddAxis(unknown, "c", Layout::REPLICATE);
  EXPECT_FALSE(CheckLayout(unknown, mesh, {3, 3}).ok());
}

}  // namespace
}  // namespace troupe
