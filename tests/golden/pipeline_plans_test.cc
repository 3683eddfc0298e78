// Whole plans do what the papers say: for all schedules and small shapes, the
// plan of a model whose stages take one time is right (CheckPrograms), and with
// transfers that take none a simulated step takes as long, and keeps as many
// activations, as the schedule's closed form says.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/check_program.h"
#include "scheduler/passes/passes.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "scheduler/simulate/simulate.h"
#include "tests/golden/given_times.h"
#include "tests/scheduler/pipelines/closed_forms.h"

namespace troupe {
namespace {

constexpr int kRanksMax = 8;
constexpr int kMicroBatchesMax = 24;
constexpr int kVirtualStagesMax = 3;
constexpr int64_t kPass = 1000;           // ns
constexpr int64_t kStashBytes = 1 << 20;  // more than all that is no stash

// What a unit's passes take, in passes of kPass.
struct UnitPasses {
  int units = 1;  // of each stage
  PassTimes times;
  int data = 1;  // replicas of the pipeline
};

JobSpec Job(const Pipeline& pipeline, const PipelineShape& shape,
            const UnitPasses& passes) {
  const double us = kPass / 1000.0;
  JobSpec job;
  job.set_name("closed form");
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("synthetic");
  model.set_units(shape.stages() * passes.units);
  model.add_parameter_bytes(64);
  model.add_forward_us(us * passes.times.forward);
  model.add_backward_input_us(us * passes.times.backward_input);
  model.add_backward_weight_us(us * passes.times.backward_weight);
  job.mutable_optimizer()->set_lr(0.1);
  job.mutable_training()->set_steps(10);
  job.mutable_training()->set_sequence_length(1);
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_global_batch_size(shape.micro_batches *
                                                passes.data);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_data(passes.data);
  parallelism.set_pipeline(shape.ranks);
  parallelism.set_pipeline_schedule(std::string(pipeline.name));
  parallelism.set_virtual_stages(shape.virtual_stages);
  return job;
}

// Every unit stashes kStashBytes of a micro-batch.
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

int64_t StepTime(const Plan& plan) {
  const auto time = [&](int, const Instruction& instruction) {
    return GivenTime(plan, instruction);
  };
  return SimulateSteps(plan, time).period_ns;
}

// Stashes that are kept at once: from a forward to its backward-weight. What
// filled the pipeline is there when a step begins.
int StashesKept(const Role& role) {
  int kept = 0;
  int peak = 0;
  for (const auto kind : {Program::FILL, Program::TRAIN}) {
    const Program* const program = FindProgram(role, kind);
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
int StashPlaces(const Role& role) {
  std::set<std::tuple<int, int64_t, int>> places;  // slot, offset, copy
  for (const Program& program : role.programs()) {
    for (const Buffer& buffer : program.buffers()) {
      if (buffer.bytes() < kStashBytes) continue;
      const int copies = CopiesOf(role.slots(buffer.slot()));
      for (int copy = 0; copy < copies; ++copy) {
        places.insert({buffer.slot(), buffer.offset(), copy});
      }
    }
  }
  return static_cast<int>(places.size());
}

void ExpectClosedForm(const Pipeline& pipeline, const PipelineShape& shape,
                      int data) {
  const auto order = pipeline.order(shape);
  const auto plan = MakePlan(Job(pipeline, shape, {.times = {}, .data = data}));
  ASSERT_EQ(plan.status(), order.status());
  if (!plan.ok()) return;
  ASSERT_EQ(CheckPrograms(*plan), absl::OkStatus());
  const ClosedForm& form = FindClosedForm(pipeline.name);
  const int64_t passes =
      3 * shape.micro_batches * shape.virtual_stages + *form.bubble(shape, {});
  EXPECT_EQ(StepTime(*plan), passes * kPass)
      << ProgramGrid(*plan, Program::TRAIN);
  for (int p = 0; p < plan->roles_size(); ++p) {
    const Role& role = plan->roles(p);
    const int peak = form.peak(shape, p);
    EXPECT_EQ(StashesKept(role), peak) << "place " << p;
    // What is carried to the next step is there where it was in the last one.
    const bool turns = pipeline.asynchronous && shape.micro_batches % peak != 0;
    EXPECT_GE(StashPlaces(role), peak) << "place " << p;
    EXPECT_LE(StashPlaces(role), turns ? 2 * peak - 1 : peak) << "place " << p;
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
        // Replicas of the pipeline change nothing; a part of the shapes has
        // two.
        ExpectClosedForm(pipeline, shape, 1 + shape.micro_batches % 2);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

class AllPipelinePlans : public ::testing::TestWithParam<std::string> {};

TEST_P(AllPipelinePlans, TakeAndKeepWhatThePapersSay) {
  ExpectClosedForms(GetParam());
}

// However many units a stage has: a backward pass that is not split is one
// piece, whose gradient leaves at its end; of one that is split, it leaves when
// the backward-inputs of all units are done.
TEST(PipelinePlans, AStageIsOnePiece) {
  for (const Pipeline& pipeline : Pipelines()) {
    for (const int units : {2, 3}) {
      const PipelineShape shape = {
          .ranks = 4,
          .micro_batches = 8,
          .virtual_stages = pipeline.default_virtual_stages};
      const auto plan =
          MakePlan(Job(pipeline, shape, {.units = units, .times = {}}));
      ASSERT_EQ(plan.status(), absl::OkStatus());
      const int passes = 3 * shape.micro_batches * shape.virtual_stages +
                         *FindClosedForm(pipeline.name).bubble(shape, {});
      EXPECT_EQ(StepTime(*plan), units * passes * kPass)
          << pipeline.name << " with " << units << " units a stage";
    }
  }
}

// Without clipping, ranks are in different steps at once; with it, each step
// ends when the last rank is done.
TEST(PipelinePlans, ClippingEndsAStepInABarrier) {
  for (const char* const name : {"zb_h2", "zb_v"}) {
    const Pipeline pipeline = *FindPipeline(name);
    const PipelineShape shape = {
        .ranks = 4,
        .micro_batches = 8,
        .virtual_stages = pipeline.default_virtual_stages};
    const int busy = 3 * shape.micro_batches * shape.virtual_stages;
    JobSpec job = Job(pipeline, shape, {});
    EXPECT_EQ(StepTime(*MakePlan(job)), busy * kPass) << name;
    job.mutable_training()->set_gradient_clipping(1);
    EXPECT_EQ(StepTime(*MakePlan(job)), (busy + 3) * kPass) << name;
  }
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Pipeline& pipeline : Pipelines()) {
    names.emplace_back(pipeline.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Schedules, AllPipelinePlans,
                         ::testing::ValuesIn(Names()),
                         [](const auto& info) { return "Of_" + info.param; });

}  // namespace
}  // namespace troupe
