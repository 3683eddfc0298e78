#include "tests/scheduler/example_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "proto/plan/program_text.h"
#include "proto/plan/roles.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "tests/proto/plan/made_roles.h"

namespace troupe {

Plan ExamplePlan(const JobSpec& job) {
  std::vector<WorkerDescription> workers = ExampleWorkers(RanksNeeded(job));
  const MemorySpec& memory = job.memory();
  const bool tiers = memory.has_optimizer() || memory.has_parameters() ||
                     memory.has_gradients() || memory.has_activations() ||
                     job.has_recovery();
  for (WorkerDescription& worker : workers) {
    if (tiers) worker.clear_budgets();
  }
  absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return *std::move(plan);
}

Draft ExampleDraft(const JobSpec& job, absl::string_view last_pass) {
  absl::StatusOr<JobSpec> resolved = ResolveJob(job);
  CHECK_OK(resolved.status());
  absl::StatusOr<Draft> draft = StartDraft(*resolved);
  CHECK_OK(draft.status());
  if (last_pass.empty()) return *std::move(draft);
  for (const Pass& pass : Passes()) {
    pass.Run(*draft);
    if (pass.name == last_pass) return *std::move(draft);
  }
  CHECK(false) << "no pass " << std::string(last_pass);
  return *std::move(draft);
}

std::string ProgramWords(const Plan& plan, int rank, Program::Kind kind) {
  std::vector<std::string> words;
  const Program* const program = FindProgram(RoleOf(plan, rank), kind);
  if (program == nullptr) return "";
  for (const Instruction& instruction : program->instructions()) {
    words.push_back(InstructionText(instruction));
  }
  return absl::StrJoin(words, " | ");
}

Program& ProgramOf(Plan& plan, int rank, Program::Kind kind) {
  if (plan.roles_size() < MeshSize(plan.mesh())) SplitRoles(plan);
  Program* const program = FindProgram(*plan.mutable_roles(rank), kind);
  CHECK(program != nullptr);
  return *program;
}

int IndexOf(const Program& program, absl::string_view text) {
  for (int i = 0; i < program.instructions_size(); ++i) {
    if (InstructionText(program.instructions(i)) == text) return i;
  }
  CHECK(false) << "no instruction " << std::string(text);
  return -1;
}

void Remove(Program& program, int index) {
  program.mutable_instructions()->DeleteSubrange(index, 1);
  for (Instruction& instruction : *program.mutable_instructions()) {
    auto& after = *instruction.mutable_after();
    after.erase(std::remove(after.begin(), after.end(), index), after.end());
    for (int& earlier : after) earlier -= earlier > index ? 1 : 0;
  }
}

}  // namespace troupe
