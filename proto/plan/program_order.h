// Which instructions of a rank are certainly done before which: what follows
// from the order of each lane and from `after`. The pass that derives `after`
// asks it which edges say something new; check_program asks it whether memory
// is safe.
#ifndef TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_
#define TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_

#include <vector>

#include "proto/program.pb.h"

namespace troupe {

// A vector clock for each instruction: how many instructions of each lane are
// done when it starts.
class ProgramOrder {
 public:
  // Of a plan with this number of lanes.
  explicit ProgramOrder(int lanes) : last_(lanes), counts_(lanes) {}
  // REQUIRES `after` to hold earlier instructions only.
  ProgramOrder(const Program& program, int lanes);

  // Adds the next instruction, which waits for all in `after` (earlier ones, in
  // any order). Returns those of them that say something new, ascending: the
  // rest follow from these and from the lanes' order.
  std::vector<int> Append(int lane, std::vector<int> after);

  // Whether `earlier` is done when `later` starts.
  bool Before(int earlier, int later) const;

 private:
  // Of an instruction, on a lane.
  int& ClockOf(int index, int lane) {
    return clocks_[index * last_.size() + lane];
  }

  std::vector<int> lanes_;      // by instruction
  std::vector<int> positions_;  // of an instruction in its lane
  std::vector<int> clocks_;     // by instruction, of each lane
  std::vector<int> last_;       // by lane: 1 + last instruction; 0: none
  std::vector<int> counts_;     // by lane
};

// Adds an instruction to some that are waited for, in the place of an earlier
// one on its lane: to wait for the later is to wait for both.
void AddLaterOfLane(const Program& program, int instruction,
                    std::vector<int>& instructions);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_
