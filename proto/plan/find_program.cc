#include "proto/plan/find_program.h"

namespace troupe {

const Program* FindProgram(const Role& role, Program::Kind kind) {
  for (const Program& program : role.programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

Program* FindProgram(Role& role, Program::Kind kind) {
  for (Program& program : *role.mutable_programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

const Program* StepProgram(const Role& role) {
  const Program* const train = FindProgram(role, Program::TRAIN);
  return train != nullptr ? train : FindProgram(role, Program::VALIDATE);
}

Program::Kind StepKind(const JobSpec& job) {
  return job.evaluate() ? Program::VALIDATE : Program::TRAIN;
}

bool LoadsData(const Role& role) {
  for (const Program& program : role.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      if (instruction.kind() == Instruction::LOAD_BATCH) return true;
    }
  }
  return false;
}

}  // namespace troupe
