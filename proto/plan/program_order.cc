#include "proto/plan/program_order.h"

#include <algorithm>
#include <functional>

#include "proto/base/check.h"

namespace troupe {

ProgramOrder::ProgramOrder(const Program& program, int lanes)
    : ProgramOrder(lanes) {
  for (const Instruction& instruction : program.instructions()) {
    Append(instruction.lane(),
           {instruction.after().begin(), instruction.after().end()});
  }
}

std::vector<int> ProgramOrder::Append(int lane, std::vector<int> after) {
  const int index = static_cast<int>(lanes_.size());
  const int lanes = static_cast<int>(last_.size());
  CHECK(lane >= 0 && lane < lanes) << "instruction " << index;
  clocks_.resize(clocks_.size() + lanes);
  int* const clock = &ClockOf(index, 0);
  const auto include = [&](int done) {
    const int* const before = &ClockOf(done, 0);
    for (int i = 0; i < lanes; ++i) clock[i] = std::max(clock[i], before[i]);
    clock[lanes_[done]] = std::max(clock[lanes_[done]], positions_[done] + 1);
  };
  if (last_[lane] > 0) include(last_[lane] - 1);

  // Latest first: a later instruction may imply an earlier one, never the other
  // way round, so what is kept is exactly what is needed.
  std::sort(after.begin(), after.end(), std::greater<int>());
  std::vector<int> needed;
  for (const int earlier : after) {
    CHECK(earlier >= 0 && earlier < index) << "instruction " << index;
    if (clock[lanes_[earlier]] > positions_[earlier]) continue;
    needed.push_back(earlier);
    include(earlier);
  }
  std::reverse(needed.begin(), needed.end());

  lanes_.push_back(lane);
  positions_.push_back(counts_[lane]++);
  last_[lane] = index + 1;
  return needed;
}

bool ProgramOrder::Before(int earlier, int later) const {
  return clocks_.at(later * last_.size() + lanes_.at(earlier)) >
         positions_.at(earlier);
}

void AddLaterOfLane(const Program& program, int instruction,
                    std::vector<int>& instructions) {
  const int lane = program.instructions(instruction).lane();
  for (int& earlier : instructions) {
    if (program.instructions(earlier).lane() != lane) continue;
    earlier = instruction;
    return;
  }
  instructions.push_back(instruction);
}

}  // namespace troupe
