#include "scheduler/planner/plan_size.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/plan_limits.h"
#include "scheduler/passes/passes.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

Draft DraftOf(const JobSpec& job) {
  return StartDraft(ResolveJob(job).value()).value();
}

// What is counted, after it was built.
int64_t Built(Draft draft, Program::Kind kind) {
  for (const Pass& pass : ProgramPasses()) pass.Run(draft);
  int64_t instructions = 0;
  for (const Role& role : draft.plan.roles()) {
    for (const Program& program : role.programs()) {
      if (program.kind() != kind) continue;
      for (const Instruction& instruction : program.instructions()) {
        switch (instruction.kind()) {
          case Instruction::FORWARD:
          case Instruction::RECOMPUTE:
          case Instruction::BACKWARD_INPUT:
          case Instruction::BACKWARD_WEIGHT:
          case Instruction::EXCHANGE:
            ++instructions;
            break;
          default:
            break;
        }
      }
    }
  }
  return instructions;
}

struct Case {
  const char* name;
  std::function<void(JobSpec& job)> make;
};
const Case kCases[] = {
    {"plain", [](JobSpec&) {}},
    {"validation",
     [](JobSpec& job) {
       job.mutable_data()->set_validation_fraction(0.1);
       job.mutable_training()->set_validate_every(5);
     }},
    {"recompute",
     [](JobSpec& job) {
       job.mutable_memory()->mutable_recompute()->set_mode("full");
       job.mutable_parallelism()->set_context(2);
       job.mutable_parallelism()->set_context_method("ring");
     }},
    {"sequence parallel",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_tensor(2);
       job.mutable_parallelism()->set_sequence_parallel(true);
     }},
    {"ring",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_context(4);
       job.mutable_parallelism()->set_context_method("ring");
     }},
    {"2d",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_tensor(4);
       job.mutable_parallelism()->set_tensor_method("2d");
     }},
    {"pipeline",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_pipeline(2);
       job.mutable_parallelism()->set_pipeline_schedule("zb_h1");
       job.mutable_parallelism()->set_tensor(2);
     }},
    {"never drains",
     [](JobSpec& job) {
       job.mutable_parallelism()->set_pipeline(2);
       job.mutable_parallelism()->set_pipeline_schedule("pipedream");
     }},
};

absl::Status CheckSize(const Draft& draft, int64_t instructions_max) {
  return CheckPlanSize(draft, PlanSizeOf(draft), instructions_max);
}

TEST(PlanSize, IsWhatPassesBuild) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    JobSpec job = ExampleJob({.micro_batches = 6});
    c.make(job);
    const Draft draft = DraftOf(job);
    const PlanSize size = PlanSizeOf(draft);
    EXPECT_GT(size.train, 0);
    EXPECT_EQ(size.train, Built(draft, Program::TRAIN));
    EXPECT_EQ(size.validate, Built(draft, Program::VALIDATE));
    EXPECT_EQ(size.fill, Built(draft, Program::FILL));
  }
}

JobSpec Evaluation(int windows) {
  JobSpec job;
  job.set_name("evaluation");
  job.set_evaluate(true);
  *job.mutable_model() = ExampleJob({}).model();
  job.mutable_data()->set_validation("/v.tokens");
  job.mutable_training()->set_steps(1);
  job.mutable_training()->set_global_batch_size(windows);
  job.mutable_training()->set_micro_batch_size(2);
  return job;
}

TEST(PlanSize, OfAnEvaluationIsItsForwardPasses) {
  const Draft draft = DraftOf(Evaluation(16));
  const PlanSize size = PlanSizeOf(draft);
  EXPECT_EQ(size.train, 0);
  EXPECT_EQ(size.validate, Built(draft, Program::VALIDATE));
  EXPECT_EQ(size.total(), size.validate);
  const absl::Status status = CheckSize(draft, size.total() - 1);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("training.global_batch_size: 16 windows make a plan "
                         "of "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("use at most 14"));
  EXPECT_TRUE(CheckSize(DraftOf(Evaluation(14)), size.total() - 1).ok());
}

JobSpec Ring(int micro_batches) {
  JobSpec job = ExampleJob({.micro_batches = micro_batches});
  job.mutable_parallelism()->set_context(4);
  job.mutable_parallelism()->set_context_method("ring");
  return job;
}

TEST(PlanSize, SaysWhatIsTooLongAndTheWayOut) {
  const PlanSize size = PlanSizeOf(DraftOf(Ring(8)));
  EXPECT_TRUE(CheckSize(DraftOf(Ring(8)), size.total()).ok());
  const absl::Status status = CheckSize(DraftOf(Ring(8)), size.total() - 1);
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("training.micro_batch_size: 2 makes 8 micro-batches a "
                         "step, each of "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("has at most 7, "));
  EXPECT_THAT(std::string(CheckSize(DraftOf(Ring(8)), 5).message()),
              StartsWith("parallelism.context: 4 ranks exchange so often"));
  JobSpec validates = Ring(1);
  validates.mutable_data()->set_validation_fraction(0.1);
  validates.mutable_training()->set_validate_every(5);
  validates.mutable_training()->set_validation_sequences(64);
  const PlanSize both = PlanSizeOf(DraftOf(validates));
  EXPECT_THAT(
      std::string(CheckSize(DraftOf(validates),
                            both.train + 3 * both.validation_micro_batch)
                      .message()),
      AllOf(StartsWith("training.validation_sequences: 64 makes a plan of "),
            HasSubstr("use at most 6")));
}

// Passes of units are few enough, but each of them is many instructions.
TEST(PlanSize, IsCheckedBeforeAnythingIsBuilt) {
  const JobSpec job = Ring(40'000);
  ASSERT_TRUE(ResolveJob(job).ok());
  const absl::Status status = CompilePlan(job, ExampleWorkers(4)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              StartsWith("training.micro_batch_size: 2 makes 40000 "));
}

// So that many plans at once can be bounded in sum, and nothing is built for
// one that gave up meanwhile.
TEST(PlanSize, RoomIsAskedForBeforeAnythingIsBuilt) {
  MayGoOn may_go_on;
  int64_t asked = 0;
  may_go_on.take_room = [&](int64_t instructions) {
    EXPECT_GE(instructions, asked) << "what was built before may be compared";
    asked = instructions;
    return absl::OkStatus();
  };
  const JobSpec job = Ring(8);
  ASSERT_TRUE(CompilePlan(job, ExampleWorkers(4), may_go_on).ok());
  EXPECT_EQ(asked, PlanSizeOf(DraftOf(job)).total());
  may_go_on.take_room = [](int64_t) {
    return absl::CancelledError("gave up in the queue");
  };
  EXPECT_TRUE(absl::IsCancelled(
      CompilePlan(job, ExampleWorkers(4), may_go_on).status()));
}

// Of many plans that are compared, each is shorter.
TEST(PlanSize, IsSmallerWherePlansAreCompared) {
  const PlanSize size = PlanSizeOf(DraftOf(Ring(1)));
  const JobSpec job =
      Ring(static_cast<int>(kComparedInstructionsMax / size.micro_batch) + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(
      TryPlan(job, ExampleWorkers(4), GatherRoom::kAll).status()));
}

// A schedule of a thousand ranks and tens of thousands of micro-batches takes
// gigabytes, for four units.
TEST(PlanSize, StagesAreCountedBeforeTheyAreOrdered) {
  JobSpec job = ExampleJob({.micro_batches = 60'000});
  job.mutable_parallelism()->set_pipeline(kPipelineMax);
  EXPECT_THAT(
      std::string(
          CompilePlan(job, ExampleWorkers(kPipelineMax)).status().message()),
      StartsWith("parallelism.pipeline: 1024 "));
}

}  // namespace
}  // namespace troupe
