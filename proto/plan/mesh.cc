#include "proto/plan/mesh.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/plan_limits.h"

namespace troupe {
namespace {

// Ranks at each place of a pipeline.
int RanksBehindPipeline(const Mesh& mesh) {
  int ranks = 1;
  for (int i = mesh.axes_size() - 1; i >= 0; --i) {
    if (mesh.axes(i).name() == kPipelineAxis) break;
    ranks *= mesh.axes(i).size();
  }
  return ranks;
}

}  // namespace

absl::Status CheckMesh(const Mesh& mesh) {
  std::set<std::string> names;
  int64_t ranks = 1;
  for (const Axis& axis : mesh.axes()) {
    if (axis.size() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("mesh axis ", axis.name(),
                                                     " has size ", axis.size(),
                                                     "; use 1 or more"));
    }
    if (!names.insert(axis.name()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("mesh axis ", axis.name(), " is there twice"));
    }
    ranks *= axis.size();
    if (ranks > kRanksMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("the mesh has more than ", kRanksMax, " ranks at axis ",
                       axis.name()));
    }
  }
  return absl::OkStatus();
}

int MeshSize(const Mesh& mesh) {
  int ranks = 1;
  for (const Axis& axis : mesh.axes()) ranks *= axis.size();
  return ranks;
}

int AxisSize(const Mesh& mesh, absl::string_view name) {
  for (const Axis& axis : mesh.axes()) {
    if (axis.name() == name) return axis.size();
  }
  return 1;
}

std::vector<int> Coordinates(const Mesh& mesh, int rank) {
  CHECK(rank >= 0 && rank < MeshSize(mesh)) << "rank " << rank;
  std::vector<int> coordinates(mesh.axes_size());
  for (int i = mesh.axes_size() - 1; i >= 0; --i) {
    coordinates[i] = rank % mesh.axes(i).size();
    rank /= mesh.axes(i).size();
  }
  return coordinates;
}

int RankAt(const Mesh& mesh, const std::vector<int>& coordinates) {
  CHECK_EQ(static_cast<int>(coordinates.size()), mesh.axes_size());
  int rank = 0;
  for (int i = 0; i < mesh.axes_size(); ++i) {
    CHECK(coordinates[i] >= 0 && coordinates[i] < mesh.axes(i).size())
        << "coordinate " << coordinates[i] << " on " << mesh.axes(i).name();
    rank = rank * mesh.axes(i).size() + coordinates[i];
  }
  return rank;
}

int CoordinateOn(const Mesh& mesh, absl::string_view axis, int rank) {
  const std::vector<int> coordinates = Coordinates(mesh, rank);
  for (int i = 0; i < mesh.axes_size(); ++i) {
    if (mesh.axes(i).name() == axis) return coordinates[i];
  }
  return 0;
}

int RankBefore(const Mesh& mesh, absl::string_view axis, int rank, int places) {
  std::vector<int> coordinates = Coordinates(mesh, rank);
  for (int i = 0; i < mesh.axes_size(); ++i) {
    const int size = mesh.axes(i).size();
    if (mesh.axes(i).name() != axis) continue;
    coordinates[i] = (coordinates[i] + size - places % size) % size;
  }
  return RankAt(mesh, coordinates);
}

int PipelineCount(const Mesh& mesh) {
  return MeshSize(mesh) / AxisSize(mesh, kPipelineAxis);
}

int PipelineOf(const Mesh& mesh, int rank) {
  const int behind = RanksBehindPipeline(mesh);
  const int before = rank / (behind * AxisSize(mesh, kPipelineAxis));
  return before * behind + rank % behind;
}

int RankOfPipeline(const Mesh& mesh, int pipeline, int pipeline_rank) {
  const int behind = RanksBehindPipeline(mesh);
  const int places = AxisSize(mesh, kPipelineAxis);
  return (pipeline / behind * places + pipeline_rank) * behind +
         pipeline % behind;
}

std::string MeshText(const Mesh& mesh) {
  if (mesh.axes_size() == 0) return "1 rank";
  return absl::StrJoin(mesh.axes(), " x ", [](std::string* out, const Axis& a) {
    absl::StrAppend(out, a.name(), " ", a.size());
  });
}

}  // namespace troupe
