#include "worker/engine/rank_programs.h"

#include "proto/base/check.h"

namespace troupe {
namespace {

const Program* Find(const RankPlan& rank, Program::Kind kind) {
  for (const Program& program : rank.programs()) {
    if (program.kind() == kind) return &program;
  }
  return nullptr;
}

}  // namespace

RankPrograms ProgramsOf(const RankPlan& rank, const Derived& derived) {
  RankPrograms programs = {.train = Find(rank, Program::TRAIN),
                           .validate = Find(rank, Program::VALIDATE),
                           .checkpoint = Find(rank, Program::CHECKPOINT),
                           .fill = Find(rank, Program::FILL),
                           .report = Find(rank, Program::REPORT)};
  CHECK(programs.train != nullptr) << "a plan without a TRAIN program";
  CHECK(derived.report_lag() == 0 || programs.report != nullptr)
      << "a plan that reports late without a REPORT program";
  for (const Instruction& instruction : programs.train->instructions()) {
    if (instruction.kind() == Instruction::REDUCE_SCALARS) {
      programs.report_lag = -instruction.ahead();
    }
  }
  return programs;
}

}  // namespace troupe
