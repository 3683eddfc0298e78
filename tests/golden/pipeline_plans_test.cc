// Whole plans do what the papers say: for all schedules and small shapes, the
// plan of a model whose stages take one time is right (CheckPrograms), and with
// transfers that take none a simulated step takes as long, and keeps as many
// activations, as the schedule's closed form says.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "scheduler/passes/passes.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/simulate/simulate.h"
#include "tests/scheduler/pipelines/closed_forms.h"

namespace troupe {
namespace {

constexpr int kRanksMax = 8;
constexpr int kMicroBatchesMax = 24;
constexpr int kVirtualStagesMax = 3;
constexpr int64_t kPass = 1000;           // ns
constexpr int64_t kStashBytes = 1 << 20;  // more than all that is no stash

bool Splits(const Pipeline& pipeline) {
  return absl::StartsWith(pipeline.name, "zb_");
}

JobSpec Job(const Pipeline& pipeline, const PipelineShape& shape) {
  const bool splits = Splits(pipeline);
  JobSpec job;
  job.set_name("closed form");
  job.mutable_model()->set_architecture("synthetic");
  job.mutable_model()->set_units(shape.stages());
  job.mutable_model()->add_parameter_bytes(64);
  job.mutable_model()->add_forward_us(1);
  job.mutable_model()->add_backward_input_us(splits ? 1 : 2);
  job.mutable_model()->add_backward_weight_us(splits ? 1 : 0);
  job.mutable_optimizer()->set_lr(0.1);
  job.mutable_training()->set_steps(10);
  job.mutable_training()->set_sequence_length(1);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(shape.micro_batches);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(shape.ranks);
  parallelism.set_pipeline_schedule(std::string(pipeline.name));
  parallelism.set_virtual_stages(shape.virtual_stages);
  return job;
}

// A unit a stage, each of which stashes kStashBytes of a micro-batch.
absl::StatusOr<Plan> MakePlan(const JobSpec& job) {
  const auto resolved = ResolveJob(job);
  if (!resolved.ok()) return resolved.status();
  auto draft = StartDraft(*resolved);
  if (!draft.ok()) return draft.status();
  for (Unit& unit : *draft->plan.mutable_units()) {
    unit.set_stash_bytes(kStashBytes);
  }
  RunPasses(*draft);
  return std::move(draft->plan);
}

// What one backward pass makes is there at its end, as in the papers: the half
// that others wait for takes its whole time.
InstructionTime UnitCosts(bool splits) {
  return [splits](int, const Instruction& instruction) -> int64_t {
    switch (instruction.kind()) {
      case Instruction::FORWARD:
        return kPass;
      case Instruction::BACKWARD_INPUT:
        return splits ? kPass : 2 * kPass;
      case Instruction::BACKWARD_WEIGHT:
        return splits ? kPass : 0;
      default:
        return 0;
    }
  };
}

// Stashes that are kept at once: from a forward to its backward-weight. What
// filled the pipeline is there when a step begins.
int StashesKept(const RankPlan& rank) {
  int kept = 0;
  int peak = 0;
  for (const auto kind : {Program::FILL, Program::TRAIN}) {
    const Program* const program = FindProgram(rank, kind);
    if (program == nullptr) continue;
    for (const Instruction& instruction : program->instructions()) {
      kept += instruction.kind() == Instruction::FORWARD;
      kept -= instruction.kind() == Instruction::BACKWARD_WEIGHT;
      peak = std::max(peak, kept);
    }
  }
  return peak;
}

// Room for stashes on a rank.
int StashSlots(const RankPlan& rank) {
  int slots = 0;
  for (const Slot& slot : rank.slots()) {
    if (slot.bytes() >= kStashBytes) slots += std::max(1, slot.copies());
  }
  return slots;
}

void ExpectClosedForm(const Pipeline& pipeline, const PipelineShape& shape) {
  const auto order = pipeline.order(shape);
  const auto plan = MakePlan(Job(pipeline, shape));
  ASSERT_EQ(plan.status(), order.status());
  if (!plan.ok()) return;
  ASSERT_EQ(CheckPrograms(*plan), absl::OkStatus());
  const ClosedForm& form = FindClosedForm(pipeline.name);
  const int64_t passes =
      3 * shape.micro_batches * shape.virtual_stages + *form.bubble(shape, {});
  int64_t step = passes * kPass;
  if (pipeline.asynchronous) {
    // Once a step all ranks meet to sum its loss, and the first is 2 (P - 1)
    // passes behind the last.
    step = std::max(step, (step + 2 * (shape.ranks - 1) * kPass) / 2);
  }
  EXPECT_EQ(SimulateSteps(*plan, UnitCosts(Splits(pipeline))).period_ns, step)
      << ProgramGrid(*plan, Program::TRAIN);
  for (const RankPlan& rank : plan->ranks()) {
    const int peak = form.peak(shape, rank.rank());
    EXPECT_EQ(StashesKept(rank), peak) << "rank " << rank.rank();
    // What is carried to the next step has a slot to itself all the time.
    const int carried = pipeline.asynchronous ? peak - 1 : 0;
    EXPECT_GE(StashSlots(rank), peak) << "rank " << rank.rank();
    EXPECT_LE(StashSlots(rank), peak + carried) << "rank " << rank.rank();
  }
}

void ExpectClosedForms(const std::string& name) {
  const Pipeline pipeline = *FindPipeline(name);
  PipelineShape shape;
  for (shape.ranks = 1; shape.ranks <= kRanksMax; ++shape.ranks) {
    for (shape.micro_batches = 1; shape.micro_batches <= kMicroBatchesMax;
         ++shape.micro_batches) {
      for (shape.virtual_stages = 1; shape.virtual_stages <= kVirtualStagesMax;
           ++shape.virtual_stages) {
        SCOPED_TRACE(absl::StrCat(name, " on ", shape.ranks, " ranks with ",
                                  shape.micro_batches, " micro-batches and ",
                                  shape.virtual_stages, " stages a rank"));
        ExpectClosedForm(pipeline, shape);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class PipelinePlans : public ::testing::TestWithParam<std::string> {};

TEST_P(PipelinePlans, TakeAndKeepWhatThePapersSay) {
  ExpectClosedForms(GetParam());
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, PipelinePlans, ::testing::ValuesIn(Names()),
                         [](const auto& info) { return "of_" + info.param; });

}  // namespace
}  // namespace troupe
