// Where instructions of several ranks meet. A collective runs once every member
// of its group has reached it, and holds its lane on each of them until then.
// The simulator and check_program both run programs with ReadyQueue and this
// class, so they agree on what a wait across ranks is.
#ifndef TROUPE_PROTO_PLAN_MEETING_H_
#define TROUPE_PROTO_PLAN_MEETING_H_

#include <map>
#include <utility>
#include <vector>

#include "proto/plan.pb.h"

namespace troupe {

// Instruction `instruction` of rank `rank`.
struct RankInstruction {
  int rank = 0;
  int instruction = 0;
  bool operator==(const RankInstruction&) const = default;
};

// Whether instructions of this kind need other ranks to run.
bool IsCollective(Instruction::Kind kind);

class Meeting {
 public:
  // Borrows `plan`. Ranks without a program of this kind never arrive.
  Meeting(const Plan& plan, Program::Kind kind);

  // The rank has reached this instruction. Returns all that run together from
  // now on, this one included, or nothing while others have yet to come.
  std::vector<RankInstruction> Arrive(const RankInstruction& here);

  // The ranks that an instruction which has arrived still waits for.
  std::vector<int> MissingFor(const RankInstruction& here) const;

 private:
  // What meets: instructions of one group on one lane, in the order of the
  // lane.
  using Place = std::pair<int, Lane>;

  const Instruction& At(const RankInstruction& here) const;

  const Plan& plan_;
  std::map<int, const Program*> programs_;  // by rank
  // Who has come: the instruction of each rank.
  std::map<Place, std::map<int, int>> waiting_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MEETING_H_
