// Which instructions of a rank are certainly done before which: what follows
// from the order of each lane and from `after`. The pass that derives `after`
// asks it which edges say something new; check_program asks it whether memory
// is safe.
#ifndef TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_
#define TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_

#include <array>
#include <vector>

#include "proto/program.pb.h"

namespace troupe {

// A vector clock for each instruction: how many instructions of each lane are
// done when it starts.
class ProgramOrder {
 public:
  ProgramOrder() = default;
  // REQUIRES `after` to hold earlier instructions only.
  explicit ProgramOrder(const Program& program);

  // Adds the next instruction, which waits for all in `after` (earlier ones, in
  // any order). Returns those of them that say something new, ascending: the
  // rest follow from these and from the lanes' order.
  std::vector<int> Append(Lane lane, std::vector<int> after);

  // Whether `earlier` is done when `later` starts.
  bool Before(int earlier, int later) const;

 private:
  using Clock = std::array<int, Lane_ARRAYSIZE>;

  std::vector<Lane> lanes_;
  std::vector<int> positions_;  // of an instruction in its lane
  std::vector<Clock> clocks_;
  std::array<int, Lane_ARRAYSIZE> last_ = {};  // 1 + last instruction; 0: none
  std::array<int, Lane_ARRAYSIZE> counts_ = {};
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PROGRAM_ORDER_H_
