// Layers cut into stages by the speed and the memory of the devices on which
// they are to run.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/unequal_workers.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

struct Shape {
  int pipeline = 2;
  const char* schedule = "1f1b";
  int virtual_stages = 1;
  int data = 1;
};

// Sixteen blocks.
JobSpec Job(const Shape& shape) {
  JobSpec job =
      ExampleJob({.data = shape.data, .micro_batches = 8, .blocks = 16});
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(shape.pipeline);
  parallelism.set_pipeline_schedule(shape.schedule);
  parallelism.set_virtual_stages(shape.virtual_stages);
  return job;
}

Plan Compiled(const JobSpec& job,
              const std::vector<WorkerDescription>& workers) {
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.value_or(Plan());
}

std::vector<int> Counts(const Plan& plan) {
  std::vector<int> counts;
  for (const Stage& stage : plan.stages()) counts.push_back(stage.unit_count());
  return counts;
}

double StepWith(JobSpec job, const std::vector<int>& stages,
                const std::vector<WorkerDescription>& workers) {
  job.mutable_parallelism()->clear_stages();
  for (const int count : stages) job.mutable_parallelism()->add_stages(count);
  return Compiled(job, workers).prediction().step_seconds();
}

// Of all cuts into two.
TEST(UnequalDevices, NoCutIntoTwoIsFaster) {
  const JobSpec job = Job({});
  for (const std::vector<double>& speeds :
       {std::vector<double>{4, 1}, {1, 4}, {2, 3}}) {
    const std::vector<WorkerDescription> workers = UnequalWorkers(speeds);
    const Plan plan = Compiled(job, workers);
    double best = plan.prediction().step_seconds();
    for (int first = 1; first < plan.units_size(); ++first) {
      best = std::min(
          best, StepWith(job, {first, plan.units_size() - first}, workers));
    }
    EXPECT_LE(plan.prediction().step_seconds(), 1.03 * best);
    EXPECT_EQ(plan.prediction().stages_size(), 2);
  }
}

// The plan of equal devices, to the bit, whatever noise measurements have.
TEST(UnequalDevices, EqualOnesHaveTheNominalCut) {
  for (const Shape& shape :
       {Shape{}, Shape{.schedule = "zb_v", .virtual_stages = 2},
        Shape{.schedule = "interleaved_1f1b", .virtual_stages = 2},
        Shape{.schedule = "chimera"}}) {
    const Plan equal = Compiled(Job(shape), UnequalWorkers({1, 1}));
    const Plan noisy = Compiled(Job(shape), UnequalWorkers({1.04, 0.97}));
    EXPECT_EQ(equal.fingerprint(), noisy.fingerprint()) << shape.schedule;
    EXPECT_EQ(noisy.prediction().stages_size(), 0);
    const Plan unequal = Compiled(Job(shape), UnequalWorkers({1, 2}));
    if (std::string(shape.schedule) == "chimera") continue;
    EXPECT_NE(equal.fingerprint(), unequal.fingerprint()) << shape.schedule;
    EXPECT_LT(unequal.prediction().step_seconds(),
              StepWith(Job(shape), Counts(equal), UnequalWorkers({1, 2})))
        << shape.schedule;
  }
}

// A stage is as slow as the slowest of its replicas.
TEST(UnequalDevices, TheSlowestOfAStageCounts) {
  const Shape replicas = {.data = 2};
  // Ranks 0 and 1 hold the first stage.
  EXPECT_EQ(Counts(Compiled(Job(replicas), UnequalWorkers({4, 1, 1, 1}))),
            Counts(Compiled(Job(replicas), UnequalWorkers({1, 1, 1, 1}))));
  EXPECT_EQ(Counts(Compiled(Job(replicas), UnequalWorkers({4, 4, 1, 4}))),
            Counts(Compiled(Job({}), UnequalWorkers({4, 1}))));
}

// What a stage is decides what is trained there.
TEST(UnequalDevices, AsynchronousSchedulesStayAsTheyAre) {
  JobSpec job = Job({.schedule = "pipedream"});
  job.mutable_training()->set_gradient_clipping(0);
  EXPECT_EQ(Compiled(job, UnequalWorkers({4, 1})).fingerprint(),
            Compiled(job, UnequalWorkers({1, 1})).fingerprint());
}

TEST(UnequalDevices, SaysWhatStagesTake) {
  const Plan plan = Compiled(Job({}), UnequalWorkers({4, 1}));
  ASSERT_EQ(plan.prediction().stages_size(), 2);
  const StagePrediction& fast = plan.prediction().stages(0);
  const StagePrediction& slow = plan.prediction().stages(1);
  EXPECT_EQ(fast.device(), "cpu of worker-0");
  EXPECT_EQ(slow.device(), "cpu of worker-1");
  EXPECT_NEAR(fast.seconds(), slow.seconds(), 0.3 * slow.seconds());
  // Given stages have times, too.
  JobSpec given = Job({});
  given.mutable_parallelism()->add_stages(9);
  given.mutable_parallelism()->add_stages(9);
  const Plan other = Compiled(given, UnequalWorkers({4, 1}));
  ASSERT_EQ(other.prediction().stages_size(), 2);
  EXPECT_GT(other.prediction().stages(1).seconds(),
            3 * other.prediction().stages(0).seconds());
}

int64_t BytesOf(const Plan& plan, int role) {
  return BytesIn(plan.roles(role), DEVICE);
}

// Layers go where there is room, as few as must.
TEST(UnequalDevices, StagesFitTheirMemory) {
  for (const Shape& shape :
       {Shape{}, Shape{.schedule = "zb_v", .virtual_stages = 2}}) {
    const JobSpec job = Job(shape);
    const Plan free = Compiled(job, UnequalWorkers({4, 1}));
    for (const double share : {0.9, 0.7, 0.5}) {
      std::vector<WorkerDescription> workers = UnequalWorkers({4, 1});
      workers[0].mutable_budgets(0)->set_bytes(
          static_cast<int64_t>(share * BytesOf(free, 0)));
      const Plan plan = Compiled(job, workers);
      ASSERT_EQ(plan.roles_size(), 2) << shape.schedule << " " << share;
      EXPECT_LE(BytesOf(plan, 0), workers[0].budgets(0).bytes());
      EXPECT_EQ(plan.job().parallelism().stages_size(), plan.stages_size());
      // No block more would have fitted.
      if (shape.virtual_stages > 1) continue;
      const int first = plan.stages(0).unit_count();
      JobSpec more = job;
      more.mutable_parallelism()->add_stages(first + 1);
      more.mutable_parallelism()->add_stages(plan.units_size() - first - 1);
      EXPECT_THAT(std::string(CompilePlan(more, workers).status().message()),
                  HasSubstr("more than the budget"));
    }
  }
}

// Also where they are equally fast.
TEST(UnequalDevices, MemoryAloneMovesLayers) {
  const JobSpec job = Job({});
  const Plan equal = Compiled(job, UnequalWorkers({1, 1}));
  std::vector<WorkerDescription> workers = UnequalWorkers({1, 1});
  workers[0].mutable_budgets(0)->set_bytes(BytesOf(equal, 0) * 3 / 4);
  const Plan plan = Compiled(job, workers);
  ASSERT_EQ(plan.stages_size(), 2);
  EXPECT_LT(plan.stages(0).unit_count(), equal.stages(0).unit_count());
  // Nothing fits where both are small.
  workers[1].mutable_budgets(0)->set_bytes(BytesOf(equal, 1) * 3 / 4 + 64);
  EXPECT_THAT(std::string(CompilePlan(job, workers).status().message()),
              HasSubstr("more than the budget"));
  // Stages that are given stay.
  JobSpec given = job;
  given.mutable_parallelism()->add_stages(9);
  given.mutable_parallelism()->add_stages(9);
  workers[1].mutable_budgets(0)->set_bytes(int64_t{1} << 30);
  EXPECT_FALSE(CompilePlan(given, workers).ok());
}

}  // namespace
}  // namespace troupe
