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

bool LoadsData(const Role& role) {
  for (const Program& program : role.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      if (instruction.kind() == Instruction::LOAD_BATCH) return true;
    }
  }
  return false;
}

}  // namespace troupe
