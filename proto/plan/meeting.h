// Where instructions of several ranks meet. A collective runs once every member
// of its group has reached it, a SEND and its RECV once both ranks have; until
// then each holds its lane. The simulator and check_program both run programs
// with ReadyQueue and this class, so they agree on what a wait across ranks is.
// Ranks are the first ones of their classes, each for all that are like it.
#ifndef TROUPE_PROTO_PLAN_MEETING_H_
#define TROUPE_PROTO_PLAN_MEETING_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "proto/plan/rank_classes.h"
#include "proto/program.pb.h"

namespace troupe {

// Instruction `instruction` of rank `rank`.
struct RankInstruction {
  int rank = 0;
  int instruction = 0;
  bool operator==(const RankInstruction&) const = default;
};

// Whether instructions of this kind are entered by all members of their group.
bool IsCollective(Instruction::Kind kind);
// Whether they move something between the rank and its peer.
bool IsTransfer(Instruction::Kind kind);

// Whether it moves something between one replica and each of its servers, where
// each step is one replica's. Which replica is found at run time, so that no
// plan says which rank waits for which.
bool IsTurn(Instruction::Kind kind);

// Of the first two either: whether it waits for other ranks.
bool Meets(Instruction::Kind kind);

// Groups of the plan in which instructions of the role meet others, ascending.
std::vector<int> MeetingGroups(const Role& role);

// Whether the instruction, in the program that runs for `step` (1 is the
// first), sums the scalars of a step before the first: nobody does that.
bool SumsNoStep(const Instruction& instruction, int64_t step);

class Meeting {
 public:
  // Borrows `classes`.
  explicit Meeting(const RankClasses& classes) : classes_(classes) {}

  // The rank has reached this instruction. Returns all that run together from
  // now on, this one included, or nothing while others have yet to come. As
  // ranks may be in different programs, what meets is the next that each has
  // come to: check_program proves that these are the same.
  std::vector<RankInstruction> Arrive(const RankInstruction& here,
                                      const Instruction& instruction);

  // The ranks that an instruction which has arrived still waits for.
  std::vector<int> MissingFor(int rank, const Instruction& instruction) const;

 private:
  // What meets: instructions of one group on one lane, in the order of the
  // lane, by the first of its ranks; of a transfer, from one rank to another.
  using Place = std::tuple<int, int, int, int>;  // group, lane, from, to

  Place PlaceOf(int rank, const Instruction& instruction) const;
  // All that come to the instruction, ascending.
  std::vector<int> Members(int rank, const Instruction& instruction) const;

  const RankClasses& classes_;
  // The ranks that have come: the instruction of each.
  std::map<Place, std::map<int, int>> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MEETING_H_
