#include "proto/plan/check_program.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<WorkerDescription> WithBudget(int count, int64_t bytes) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(bytes);
  }
  return workers;
}

TEST(CheckPrograms, AcceptsACompiledPlan) {
  EXPECT_TRUE(CheckPrograms(ExamplePlan(ExampleJob({.data = 3}))).ok());
}

TEST(CheckPrograms, RunsEveryPartAndShowsTheGrid) {
  struct Fault {
    void (*plant)(Plan&);
    const char* message;
  };
  const Fault faults[] = {
      {[](Plan& p) { *p.add_roles() = p.roles(0); }, "some have several"},
      {[](Plan& p) { Remove(ProgramOf(p, 0, Program::TRAIN), 3); },
       "is missing for micro-batch 0"},
      {[](Plan& p) {
         Program& train = ProgramOf(p, 1, Program::TRAIN);
         Remove(train, IndexOf(train, "A g0"));
       },
       "but nothing on rank 1"},
      {[](Plan& p) {
         Program& train = ProgramOf(p, 1, Program::TRAIN);
         train.mutable_instructions(1)->clear_after();
       },
       "without waiting for its writer"},
  };
  for (const Fault& fault : faults) {
    JobSpec job = ExampleJob({.data = 2});
    job.mutable_training()->set_gradient_clipping(0);
    Plan plan = ExamplePlan(job);
    fault.plant(plan);
    const absl::Status status = CheckPrograms(plan);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(fault.message),
                      HasSubstr("COLLECTIVE   R u2-3 g0 | R u1 g0 | R u0 g0")));
  }
}

TEST(CheckBudgets, ToTheByte) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  int64_t need = 0;
  for (const Slot& slot : plan.roles(0).slots()) need += slot.bytes();
  EXPECT_TRUE(CheckBudgets(plan, WithBudget(2, need)).ok());
  const absl::Status status = CheckBudgets(plan, WithBudget(2, need - 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("rank 0 on worker worker-0: device memory"),
            HasSubstr("1 B more than the budget of"),
            HasSubstr("parameters 31.2 KiB"), HasSubstr("gradients 31.2 KiB"),
            HasSubstr("optimizer_moments 62.5 KiB"),
            HasSubstr("activations 44.8 KiB (overflows here)")));
}

TEST(CheckBudgets, NamesTheFirstItemThatOverflows) {
  const Plan plan = ExamplePlan(ExampleJob({}));
  EXPECT_THAT(
      std::string(CheckBudgets(plan, WithBudget(1, 40 << 10)).message()),
      HasSubstr("gradients 31.2 KiB (overflows here), optimizer_moments"));
}

TEST(CheckBudgets, NamesTheWorkerThatIsTooSmall) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  workers[1].mutable_budgets(0)->set_tier(HOST);
  EXPECT_THAT(std::string(CheckBudgets(plan, workers).message()),
              AllOf(HasSubstr("rank 1 on worker worker-1: device memory"),
                    HasSubstr("the budget of 0 B")));
  workers[1].clear_budgets();
  EXPECT_TRUE(CheckBudgets(plan, workers).ok());
}

TEST(ProgramGrid, OneRowALane) {
  const Plan plan = ExamplePlan(ExampleJob({.blocks = 1}));
  EXPECT_EQ(ProgramGrid(plan, Program::TRAIN),
            "rank 0   COMPUTE      F u0 m0 | F u1 m0 | F u2 m0 | I u2 m0 | "
            "W u2 m0 | I u1 m0 | W u1 m0 | W u0 m0 | N u2 | N u1 | N u0 | "
            "O u0 | O u1 | O u2\n"
            "rank 0   DATA         L m0\n");
  EXPECT_EQ(ProgramGrid(plan, Program::VALIDATE), "");
}

}  // namespace
}  // namespace troupe
