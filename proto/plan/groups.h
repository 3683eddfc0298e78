// Which ranks communicate with which. A group of the plan spans axes of the
// mesh, so it is there as often as the others have places: `data` of the mesh
// pipeline 2 x data 4 x tensor 2 is four groups of four ranks, numbered as
// their first ranks come.
//
//   for (const int member : MembersOf(plan.mesh(), group, rank)) ...
#ifndef TROUPE_PROTO_PLAN_GROUPS_H_
#define TROUPE_PROTO_PLAN_GROUPS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

inline constexpr int kWeightMax = 1000000;  // of Group.weights

// FailedPrecondition: an axis that the mesh lacks or that is named twice,
// blocks or strides that do not divide it, places that are not on it or not
// ascending, a number of carriers that is neither 0, 1 nor that of the groups,
// weights that are not one for each rank.
absl::Status CheckGroup(const Mesh& mesh, const Group& group);

// All below REQUIRE CheckGroup.

// Ranks of each, and how many of them there are.
int GroupSize(const Mesh& mesh, const Group& group);
int GroupCount(const Mesh& mesh, const Group& group);

// Which of them the rank is in; -1: none, its place is not among those spanned.
int GroupNumber(const Mesh& mesh, const Group& group, int rank);
// Of every rank, in time for each of them.
std::vector<int> GroupNumbers(const Mesh& mesh, const Group& group);

// Those that are in it with the rank, itself too, ascending; empty: none is.
std::vector<int> MembersOf(const Mesh& mesh, const Group& group, int rank);

// Which of them it is, and how many they are. REQUIRES that it is in one.
Piece PieceOf(const Mesh& mesh, const Group& group, int rank);

// Ranks that are at one of these places on each axis of the mesh: places by
// axis, ascending. The members of a group are such a box, whose size is a sum
// where their number is a product. Empty: no ranks.
using Box = std::vector<std::vector<int>>;
Box BoxOf(const Mesh& mesh, const Group& group, int rank);
// The ranks themselves, ascending.
std::vector<int> RanksIn(const Mesh& mesh, const Box& box);

// How the groups cut one axis of the mesh, by index: which of those on it each
// place is in (-1: none), and as which of its places.
struct AxisGroups {
  std::vector<int> number;  // by place
  std::vector<int> index;   // by place
  int groups = 1;
  int ranks = 1;  // of each
};
AxisGroups GroupsAlong(const Mesh& mesh, const Group& group, int axis);

// What carries the one of that number; the default where none is chosen yet.
const Group::Carrier& CarrierOf(const Group& group, int number);

// "data-3": that of the rank. REQUIRES that it is in one.
std::string GroupName(const Mesh& mesh, const Group& group, int rank);

// Whether it spans exactly this axis, or these, and all of them.
bool IsAlong(const Group& group, absl::string_view axis);
bool IsAlong(const Group& group,
             const google::protobuf::RepeatedPtrField<std::string>& axes);
// Whether it has ranks of several places on an axis.
bool Spans(const Mesh& mesh, const Group& group, absl::string_view axis);

// "data", "pipeline 0,3 x data", "tensor by 2", "data every 4"; "none".
std::string SpansText(const Group& group);

// The rank at another place on the axis "pipeline", and elsewhere the same: the
// one that a SEND or RECV names.
int PeerRank(const Mesh& mesh, int rank, int pipeline_place);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GROUPS_H_
