#include "proto/plan/program_order.h"

#include <algorithm>
#include <functional>

#include "proto/base/check.h"

namespace troupe {

ProgramOrder::ProgramOrder(const Program& program) {
  for (const Instruction& instruction : program.instructions()) {
    Append(instruction.lane(),
           {instruction.after().begin(), instruction.after().end()});
  }
}

std::vector<int> ProgramOrder::Append(Lane lane, std::vector<int> after) {
  const int index = static_cast<int>(lanes_.size());
  Clock clock = {};
  const auto include = [&](int done) {
    for (size_t i = 0; i < clock.size(); ++i) {
      clock[i] = std::max(clock[i], clocks_[done][i]);
    }
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
  clocks_.push_back(clock);
  last_[lane] = index + 1;
  return needed;
}

bool ProgramOrder::Before(int earlier, int later) const {
  return clocks_.at(later)[lanes_.at(earlier)] > positions_.at(earlier);
}

}  // namespace troupe
