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

}  // namespace troupe
