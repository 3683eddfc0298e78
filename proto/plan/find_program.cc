#include "proto/plan/find_program.h"

namespace troupe {

const Program* FindProgram(const RankPlan& rank, Program::Kind kind) {
  for (const Program& program : rank.programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

Program* FindProgram(RankPlan& rank, Program::Kind kind) {
  for (Program& program : *rank.mutable_programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

bool LoadsData(const RankPlan& rank) {
  for (const Program& program : rank.programs()) {
    for (const Instruction& instruction : program.instructions()) {
      if (instruction.kind() == Instruction::LOAD_BATCH) return true;
    }
  }
  return false;
}

}  // namespace troupe
