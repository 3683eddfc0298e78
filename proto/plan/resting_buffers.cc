#include "proto/plan/resting_buffers.h"

#include "proto/plan/buffer_kind.h"
#include "proto/plan/operand.h"

namespace troupe {

std::vector<int> RestingBuffers(const Program& program) {
  std::vector<int> resting(program.buffers_size(), -1);
  for (int b = 0; b < program.buffers_size(); ++b) {
    if (!IsFetched(program.buffers(b))) resting[b] = b;
  }
  // A round for each move on the way to where a value rests.
  bool found = true;
  while (found) {
    found = false;
    for (const Instruction& move : program.instructions()) {
      if (!IsMove(move.kind()) || move.operands_size() != 2) continue;
      int& from = resting[move.operands(0).buffer()];
      int& to = resting[move.operands(1).buffer()];
      if ((from < 0) == (to < 0)) continue;
      from = to = from < 0 ? to : from;
      found = true;
    }
  }
  return resting;
}

}  // namespace troupe
