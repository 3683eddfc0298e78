#include "worker/engine/rank_programs.h"

#include "proto/base/check.h"
#include "proto/plan/find_program.h"

namespace troupe {
RankPrograms ProgramsOf(const Role& role, const Derived& derived) {
  RankPrograms programs = {.step = StepProgram(role),
                           .validate = FindProgram(role, Program::VALIDATE),
                           .checkpoint = FindProgram(role, Program::CHECKPOINT),
                           .fill = FindProgram(role, Program::FILL),
                           .report = FindProgram(role, Program::REPORT),
                           .keep = FindProgram(role, Program::KEEP)};
  CHECK(programs.step != nullptr) << "a plan without a program of a step";
  if (programs.validate == programs.step) programs.validate = nullptr;
  CHECK(derived.report_lag() == 0 || programs.report != nullptr)
      << "a plan that reports late without a REPORT program";
  for (const Instruction& instruction : programs.step->instructions()) {
    switch (instruction.kind()) {
      case Instruction::REDUCE_SCALARS:
        programs.report_lag = -instruction.ahead();
        [[fallthrough]];
      case Instruction::CLAIM:
      case Instruction::ADMIT:
        programs.agrees_on_stop = true;
        break;
      default:
        break;
    }
  }
  return programs;
}

}  // namespace troupe
