#include "scheduler/passes/load_batches.h"

#include <map>
#include <set>

#include "proto/plan/batch.h"
#include "scheduler/passes/lanes.h"

namespace troupe {
namespace {

// A micro-batch of the step that is `ahead` of the program's.
struct Batch {
  int micro_batch = 0;
  int ahead = 0;
  auto operator<=>(const Batch&) const = default;
};

// Micro-batches in the order of their first use, by the position of that use.
std::map<int, Batch> FirstUses(const Plan& plan, const Program& program) {
  std::map<int, Batch> first_uses;
  std::set<Batch> seen;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    if (instruction.kind() != Instruction::FORWARD) continue;
    if (!ReadsBatch(plan, plan.units(instruction.unit()))) continue;
    const Batch batch = {.micro_batch = instruction.micro_batch(),
                         .ahead = instruction.ahead()};
    if (seen.insert(batch).second) first_uses[i] = batch;
  }
  return first_uses;
}

void AddLoad(const Batch& batch, Program& program) {
  Instruction& load = *program.add_instructions();
  load.set_kind(Instruction::LOAD_BATCH);
  load.set_lane(LaneFor(Instruction::LOAD_BATCH));
  load.set_micro_batch(batch.micro_batch);
  load.set_ahead(batch.ahead);
}

void LoadInto(const Plan& plan, Program& program) {
  const std::map<int, Batch> first_uses = FirstUses(plan, program);
  if (first_uses.empty()) return;
  Program loaded;
  loaded.set_kind(program.kind());
  AddLoad(first_uses.begin()->second, loaded);
  for (int i = 0; i < program.instructions_size(); ++i) {
    const auto use = first_uses.find(i);
    if (use != first_uses.end() && std::next(use) != first_uses.end()) {
      AddLoad(std::next(use)->second, loaded);
    }
    *loaded.add_instructions() = program.instructions(i);
  }
  program = loaded;
}

}  // namespace

void LoadBatches(Draft& draft) {
  for (Role& role : *draft.plan.mutable_roles()) {
    for (Program& program : *role.mutable_programs()) {
      LoadInto(draft.plan, program);
    }
  }
}

}  // namespace troupe
