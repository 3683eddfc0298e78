#include "scheduler/planner/gather_ahead.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/memory.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A table of 2,048 tokens, as large as ten blocks, which is gathered in front
// of each micro-batch and behind small blocks.
JobSpec UnevenJob() {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 3, .blocks = 8});
  job.mutable_model()->set_vocab_size(2048);
  job.mutable_parallelism()->set_zero(3);
  return job;
}

std::vector<WorkerDescription> WorkersWith(int64_t device_bytes) {
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(device_bytes);
    worker.mutable_calibration()->mutable_loopback()->set_bytes_per_second(2e8);
  }
  return workers;
}

constexpr int64_t kPlenty = int64_t{1} << 30;

int64_t DeviceBytes(const Plan& plan) {
  int64_t most = 0;
  for (const Role& role : plan.roles()) {
    most = std::max(most, BytesIn(role, DEVICE));
  }
  return most;
}

Plan PlanIn(int64_t device_bytes) {
  const absl::StatusOr<Plan> plan =
      CompilePlan(UnevenJob(), WorkersWith(device_bytes));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

Plan PlanWith(int64_t unsharded_bytes) {
  JobSpec job = UnevenJob();
  job.mutable_memory()->set_unsharded_bytes(unsharded_bytes);
  const absl::StatusOr<Plan> plan = CompilePlan(job, WorkersWith(kPlenty));
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

TEST(GatherAhead, RunsFartherWhereThereIsRoomAndAStepIsShorterSo) {
  const Plan nearest = PlanWith(0);
  const Plan farther = PlanIn(kPlenty);
  EXPECT_GT(UnitsAhead(farther), UnitsAhead(nearest));
  EXPECT_GT(farther.job().memory().unsharded_bytes(), 0);
  EXPECT_LT(farther.prediction().step_seconds(),
            0.95 * nearest.prediction().step_seconds());
  EXPECT_THAT(farther.prediction().gathers(),
              AllOf(StartsWith("up to "), HasSubstr(" ahead of use, in "),
                    HasSubstr("a step would be longer by ")));
  EXPECT_THAT(nearest.prediction().gathers(),
              AllOf(StartsWith("up to "), HasSubstr(" ahead of use, in ")));
  // As a user could have written it.
  const Plan written = PlanWith(farther.job().memory().unsharded_bytes());
  EXPECT_EQ(written.fingerprint(), farther.fingerprint());
}

// From the least budget with which there is a plan at all: none is exceeded,
// and a larger one makes no longer step, but for what is not worth memory.
TEST(GatherAhead, GoesAsFarAsTheBudgetAllows) {
  const int64_t least = DeviceBytes(PlanWith(0));
  EXPECT_THAT(
      std::string(
          CompilePlan(UnevenJob(), WorkersWith(least - 1)).status().message()),
      HasSubstr("device memory needs "));
  double seconds = PlanIn(least).prediction().step_seconds();
  const double longest = seconds;
  const int64_t most = DeviceBytes(PlanIn(kPlenty));
  ASSERT_GT(most, least);
  for (int i = 0; i <= 24; ++i) {
    const int64_t budget = least + (most - least) * i / 24;
    const Plan plan = PlanIn(budget);
    EXPECT_LE(DeviceBytes(plan), budget);
    EXPECT_LE(plan.prediction().step_seconds(), 1.02 * seconds) << budget;
    seconds = std::min(seconds, plan.prediction().step_seconds());
  }
  EXPECT_LT(seconds, 0.99 * longest);
}

// And there, as far as that goes: a large unit's slot has room for small ones.
TEST(GatherAhead, ATightBudgetHasNoRoomForAStepOfWork) {
  const Draft draft = ExampleDraft(UnevenJob(), "assign slots");
  const int64_t a_step_ahead = DeviceBytes(draft.plan);
  const int64_t least = DeviceBytes(PlanWith(0));
  ASSERT_LT(least, a_step_ahead);
  for (const int64_t budget : {least, (least + a_step_ahead) / 2}) {
    const Plan plan = PlanIn(budget);
    EXPECT_LE(DeviceBytes(plan), budget);
    EXPECT_TRUE(plan.job().memory().has_unsharded_bytes());
    EXPECT_LE(plan.prediction().step_seconds(),
              PlanWith(0).prediction().step_seconds());
  }
}

TEST(GatherAhead, TakesNothingForWhatGainsNothing) {
  std::vector<WorkerDescription> workers = WorkersWith(kPlenty);
  for (WorkerDescription& worker : workers) {
    Calibration& calibration = *worker.mutable_calibration();
    calibration.mutable_loopback()->set_latency_us(0);
    calibration.mutable_loopback()->set_bytes_per_second(1e15);
  }
  const absl::StatusOr<Plan> plan = CompilePlan(UnevenJob(), workers);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->job().memory().has_unsharded_bytes());
  EXPECT_THAT(plan->prediction().gathers(), StartsWith("up to "));
}

TEST(GatherAhead, LeavesWhatIsGivenAndWhatIsNotGathered) {
  EXPECT_EQ(PlanWith(0).job().memory().unsharded_bytes(), 0);
  for (const int zero : {0, 1, 2}) {
    JobSpec job = UnevenJob();
    job.mutable_parallelism()->set_zero(zero);
    const absl::StatusOr<Plan> plan = CompilePlan(job, WorkersWith(kPlenty));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_FALSE(plan->job().memory().has_unsharded_bytes());
    EXPECT_EQ(plan->prediction().gathers(), "");
    job.mutable_memory()->set_unsharded_bytes(1000);
    EXPECT_THAT(
        std::string(CompilePlan(job, WorkersWith(kPlenty)).status().message()),
        StartsWith("memory.unsharded_bytes: is for parallelism.zero: 3"));
  }
}

}  // namespace
}  // namespace troupe
