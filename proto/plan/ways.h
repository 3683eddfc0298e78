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
#ifndef TROUPE_PROTO_PLAN_WAYS_H_
#define TROUPE_PROTO_PLAN_WAYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// Memory that a member takes for the pieces of reduce-scatters and all-gathers
// in steps, which are moved in so many bytes at a time: all that are under way
// at once.
inline constexpr int64_t kLevelScratchBytes = int64_t{8} << 20;

// Way.pieces is no more.
inline constexpr int kWayPiecesMax = 1024;

// Way.row that has no steps: one communicator of all members.
inline constexpr char kFlatRow[] = "flat";

// Prediction.exchanges has at most so many, those of the most bytes.
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

// Over which backend; empty: none was chosen.
const std::string& BackendOn(const Group::Carrier& carrier, int level,
                             int number);

// Whether levels work at once: each on a piece of its own.
bool Overlaps(const Group::Way& way);
// How many pieces are between the first step and the last at once, at most. A
// piece begins when the one so many before it has arrived.
int PiecesAtOnce(const Group::Way& way);

struct WayBuffer {
  int64_t elements = 0;
  int element_bytes = 4;
};
// Into how many pieces the buffer is cut, one or more: Way.pieces, or as many
// as have elements. Where blocks are packed, into more if those under way do
// not fit kLevelScratchBytes. Piece p of an all-reduce, a reduce or a broadcast
// is EvenPiece p (proto/plan/layout.h) of the elements; of a reduce-scatter and
// an all-gather, of what each block has.
int64_t PiecesOf(const Group::Way& way, int members, const WayBuffer& buffer);

// What a step moves.
struct StepBytes {
  // Of the whole buffer of each communicator of the step's level, as that
  // communicator's own exchange of one piece has it: of the largest, where they
  // differ.
  int64_t whole = 0;
  // That all members of the group send together, to the byte, as
  // communicator.h counts: N - 1 times each reduce-scatter, all-gather and
  // broadcast, twice that an all-reduce. At most the largest int64_t.
  int64_t sent = 0;
};
// By step. Pieces are of whole elements.
std::vector<StepBytes> BytesOfSteps(const Group& group, const Group::Way& way,
                                    int members, const WayBuffer& buffer);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WAYS_H_
