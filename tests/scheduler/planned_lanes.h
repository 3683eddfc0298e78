// Programs as text on the planner's lanes, as plans have them.
#ifndef TROUPE_TESTS_SCHEDULER_PLANNED_LANES_H_
#define TROUPE_TESTS_SCHEDULER_PLANNED_LANES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plan/program_text.h"
#include "scheduler/passes/lanes.h"

namespace troupe {

inline absl::StatusOr<Instruction> ParseInstruction(absl::string_view text) {
  return ParseInstruction(text, AllLanes());
}
inline absl::StatusOr<Program> ParseProgram(absl::string_view text) {
  return ParseProgram(text, AllLanes());
}
inline std::string ProgramText(const Program& program) {
  return ProgramText(program, AllLanes());
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_PLANNED_LANES_H_
