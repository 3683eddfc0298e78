#include "tests/golden/given_times.h"

#include <cmath>

namespace troupe {

int64_t GivenTime(const Plan& plan, const Instruction& instruction) {
  const Unit& unit = plan.units(instruction.unit());
  double seconds = 0;
  if (instruction.kind() == Instruction::FORWARD) {
    seconds = unit.forward().wait_seconds();
  } else if (instruction.kind() == Instruction::BACKWARD_INPUT) {
    seconds = unit.backward_input().wait_seconds();
  } else if (instruction.kind() == Instruction::BACKWARD_WEIGHT) {
    seconds = unit.backward_weight().wait_seconds();
  }
  return std::llround(seconds * 1e9);
}

}  // namespace troupe
