// How the exchanges of a group go over communicators of some of its members
// (Group.levels, Group.ways; docs/collectives.md), and the proof that they
// arrive at the result of one communicator of all.
//
//   RETURN_IF_ERROR(CheckWays(group, members));
//   const Group::Way* const way = WayOf(group, ALL_REDUCE, bytes);
//   if (way != nullptr) ... way->steps()
//
// A member is its place in the group, 0 .. members - 1; on each level it has a
// place. The communicators of a level are numbered as their first members come.
//
// A step is a collective that all communicators of its level run at once:
//
//   reduce-scatter, all-reduce, all-gather   what they are called, of what the
//       members have: the buffer, or the share that steps before left them
//   reduce       of an all-reduce: what the members have is added up at place
//                0. The others take no part until they are told the sum
//   broadcast    of a broadcast: from the member that knows it. Of an
//                all-reduce: the sum comes down to those that reduced it
//   all-to-all   of an all-to-all: each member hands on the blocks that go to
//                the members at other places
//
// What the steps move, way_bytes.h says.
#ifndef TROUPE_PROTO_PLAN_WAYS_H_
#define TROUPE_PROTO_PLAN_WAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// Way.pieces is no more.
inline constexpr int kWayPiecesMax = 1024;

// Way.row that has no steps: one communicator of all members.
inline constexpr char kFlatRow[] = "flat";

// Prediction.exchanges has at most this number, those of the most bytes.
inline constexpr int kExchangesMax = 100;

// "all-reduce"
std::string CollectiveText(Collective collective);

// FailedPrecondition, with the group's name:
//   a level whose size is below 2, or whose size and stride do not divide the
//     members
//   a way that names levels that are not there, or several times, or whose
//     levels do not multiply to the members (Way.steps has none: flat)
//   a way with pieces below 0 or above kWayPiecesMax, or with pieces but no
//     steps
//   steps that do not arrive at the result: a summand that is left out or added
//     twice, a piece at the wrong member, a step for which its level does not
//     have what it takes
//   ways out of order
//   carriers whose levels are not those of the group, or that name another
//     number of backends than 0, 1 or that of the level's communicators
// In time for each level, step and carrier, whatever the number of members.
absl::Status CheckWays(const Group& group, int members);

// All below REQUIRE CheckWays.

int PlaceOn(const Group::Level& level, int member);
// Of its communicator on the level, by their places.
std::vector<int> MembersOn(const Group::Level& level, int member);
int NumberOn(const Group::Level& level, int member);
int CountOn(const Group::Level& level, int members);

// Of which collective's ways an exchange takes one: a reduce takes those of the
// all-reduces, so that its root has their bits; all others their own.
Collective WayCollective(Collective collective);

// The way of an exchange with steps; null: it is flat.
const Group::Way* WayOf(const Group& group, Collective collective,
                        int64_t bytes);
// Whether any exchange of the group has steps.
bool HasSteps(const Group& group);

// Whether sums of the plans' groups are taken in one order, as far as ways say
// it: of plans with the same groups.
bool HaveSameWays(const Plan& a, const Plan& b);

// Whether the member takes part in the step of that index. `root`: of a
// broadcast; of what an all-reduce reduces it is member 0.
struct RootedStep {
  int step = 0;
  int root = 0;
};
bool TakesPart(const Group& group, const Group::Way& way, int member,
               const RootedStep& at);

// Over which backend; empty: none was chosen.
const std::string& BackendOn(const Group::Carrier& carrier, int level,
                             int number);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WAYS_H_
