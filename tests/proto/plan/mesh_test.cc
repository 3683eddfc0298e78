#include "proto/plan/mesh.h"

#include <map>

#include "gtest/gtest.h"

namespace troupe {
namespace {

Mesh MakeMesh(std::vector<std::pair<std::string, int>> axes) {
  Mesh mesh;
  for (const auto& [name, size] : axes) {
    Axis* axis = mesh.add_axes();
    axis->set_name(name);
    axis->set_size(size);
  }
  return mesh;
}

TEST(Mesh, LastAxisVariesFastest) {
  const Mesh mesh = MakeMesh({{"pipeline", 2}, {"data", 3}, {"tensor", 4}});
  EXPECT_EQ(MeshSize(mesh), 24);
  EXPECT_EQ(Coordinates(mesh, 0), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(Coordinates(mesh, 1), (std::vector<int>{0, 0, 1}));
  EXPECT_EQ(Coordinates(mesh, 23), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(CoordinateOn(mesh, "data", 17), 1);
  EXPECT_EQ(CoordinateOn(mesh, "expert", 17), 0);
  EXPECT_EQ(AxisSize(mesh, "tensor"), 4);
  EXPECT_EQ(AxisSize(mesh, "expert"), 1);
  EXPECT_EQ(MeshText(mesh), "pipeline 2 x data 3 x tensor 4");
}

TEST(Mesh, CoordinatesAndRanksAreInverseForAllSmallMeshes) {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 4; ++b) {
      for (int c = 1; c <= 3; ++c) {
        const Mesh mesh = MakeMesh({{"a", a}, {"b", b}, {"c", c}});
        for (int rank = 0; rank < MeshSize(mesh); ++rank) {
          EXPECT_EQ(RankAt(mesh, Coordinates(mesh, rank)), rank);
        }
      }
    }
  }
}

TEST(Mesh, GroupsPartitionTheRanks) {
  const Mesh mesh = MakeMesh({{"pipeline", 2}, {"data", 3}, {"tensor", 2}});
  for (const std::string axis : {"pipeline", "data", "tensor", "expert"}) {
    std::map<int, int> seen;
    for (const Group& group : GroupsAlong(mesh, axis, "test")) {
      EXPECT_EQ(group.ranks_size(), AxisSize(mesh, axis));
      for (const int rank : group.ranks()) ++seen[rank];
      for (int i = 1; i < group.ranks_size(); ++i) {
        EXPECT_LT(group.ranks(i - 1), group.ranks(i));
      }
    }
    EXPECT_EQ(static_cast<int>(seen.size()), MeshSize(mesh));
    for (const auto& [rank, times] : seen) EXPECT_EQ(times, 1) << rank;
  }
  const std::vector<Group> data = GroupsAlong(mesh, "data", "sum");
  EXPECT_EQ(data[1].name(), "data-1");
  EXPECT_EQ(std::vector<int>(data[1].ranks().begin(), data[1].ranks().end()),
            (std::vector<int>{1, 3, 5}));
}

TEST(Mesh, RefusesWhatIsNoGrid) {
  EXPECT_TRUE(CheckMesh(MakeMesh({{"data", 4}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"data", 0}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"data", 2}, {"data", 2}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"a", 1 << 16}, {"b", 1 << 16}})).ok());
}

}  // namespace
}  // namespace troupe
