// The N-d grid of ranks: rank numbers to coordinates and back. Row-major: the
// last axis varies fastest, so put the axis that talks most last, where
// neighbours share a host.
#ifndef TROUPE_PROTO_PLAN_MESH_H_
#define TROUPE_PROTO_PLAN_MESH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plan.pb.h"

namespace troupe {

// Axes that every plan's mesh has. Along the second, ranks have all of the same
// units and a summand of each gradient.
inline constexpr char kPipelineAxis[] = "pipeline";
inline constexpr char kReplicaAxis[] = "data";
// The first axis where there is one: ranks at different places on it train by
// themselves (proto/plan/islands.h).
inline constexpr char kIslandAxis[] = "islands";
// All others are factors: what one does for a unit, the unit's tables and parts
// say.
inline bool IsFactor(absl::string_view axis) {
  return axis != kPipelineAxis && axis != kReplicaAxis && axis != kIslandAxis;
}

// InvalidArgument: a size below 1, a name twice, more than kRanksMax ranks
// (plan_limits.h).
absl::Status CheckMesh(const Mesh& mesh);

int MeshSize(const Mesh& mesh);

// Size of the axis; 1 where the mesh does not have it.
int AxisSize(const Mesh& mesh, absl::string_view axis);

// One coordinate an axis, in the mesh's order, and back.
std::vector<int> Coordinates(const Mesh& mesh, int rank);
int RankAt(const Mesh& mesh, const std::vector<int>& coordinates);

// This rank's place on one axis; 0 where the mesh does not have it.
int CoordinateOn(const Mesh& mesh, absl::string_view axis, int rank);

// The rank `places` places before this one on an axis, around it.
int RankBefore(const Mesh& mesh, absl::string_view axis, int rank, int places);

// The ranks that differ in their place on the axis "pipeline" only are one
// pipeline: which of how many a rank is part of, counted as their first ranks
// come, and its rank at a place on the axis.
int PipelineCount(const Mesh& mesh);
int PipelineOf(const Mesh& mesh, int rank);
int RankOfPipeline(const Mesh& mesh, int pipeline, int pipeline_rank);

// "data 4 x tensor 2".
std::string MeshText(const Mesh& mesh);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MESH_H_
