#include "proto/plan/mesh.h"

#include <utility>
#include <vector>

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

TEST(Mesh, RefusesWhatIsNoGrid) {
  EXPECT_TRUE(CheckMesh(MakeMesh({{"data", 4}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"data", 0}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"data", 2}, {"data", 2}})).ok());
  EXPECT_FALSE(CheckMesh(MakeMesh({{"a", 1 << 16}, {"b", 1 << 16}})).ok());
}

}  // namespace
}  // namespace troupe
