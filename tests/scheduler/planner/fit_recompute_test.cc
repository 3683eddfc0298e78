#include "scheduler/planner/fit_recompute.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/passes/nominal_cost.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

JobSpec Job(const std::string& mode, int pipeline = 1) {
  JobSpec job = ExampleJob({.micro_batches = 4, .blocks = 6});
  job.mutable_memory()->mutable_recompute()->set_mode(mode);
  job.mutable_parallelism()->set_pipeline(pipeline);
  return job;
}

int64_t BytesOf(const Role& role) {
  int64_t bytes = 0;
  for (const Slot& slot : role.slots()) bytes += slot.bytes();
  return bytes;
}

int64_t Need(const JobSpec& job) {
  int64_t bytes = 0;
  const Plan plan = ExamplePlan(job);
  for (const Role& role : plan.roles()) bytes = std::max(bytes, BytesOf(role));
  return bytes;
}

absl::StatusOr<Plan> Compile(const JobSpec& job, int64_t budget) {
  std::vector<WorkerDescription> workers = ExampleWorkers(RanksNeeded(job));
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(budget);
  }
  return CompilePlan(job, workers);
}

double SecondsAgain(const Plan& plan) {
  double seconds = 0;
  for (const Unit& unit : plan.units()) {
    if (unit.has_recompute()) seconds += NominalSeconds(unit.recompute());
  }
  return seconds;
}

TEST(FitRecompute, MakesNothingAgainWhereAllFits) {
  const absl::StatusOr<Plan> plan = Compile(Job("auto"), Need(Job("none")));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(SecondsAgain(*plan), 0);
}

// It fits wherever `full` does, for no more time. On one rank, the less memory
// there is, the longer a step takes.
TEST(FitRecompute, MakesAsLittleAgainAsFits) {
  for (const int pipeline : {1, 2}) {
    const int64_t full = Need(Job("full", pipeline));
    const int64_t selective = Need(Job("selective", pipeline));
    const int64_t none = Need(Job("none", pipeline));
    ASSERT_LT(full, selective);
    ASSERT_LT(selective, none);
    const double seconds_of_full =
        SecondsAgain(ExamplePlan(Job("full", pipeline)));
    double before = 0;
    for (int64_t budget = none; budget >= full; budget -= (none - full) / 12) {
      const absl::StatusOr<Plan> plan = Compile(Job("auto", pipeline), budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      for (const Role& role : plan->roles()) {
        EXPECT_LE(BytesOf(role), budget);
      }
      const double step = plan->prediction().step_seconds();
      if (pipeline == 1) {
        EXPECT_GE(step, before) << budget;
      }
      before = step;
      const double again = SecondsAgain(*plan);
      EXPECT_EQ(again > 0, budget < none) << budget;
      EXPECT_LE(again, 1.0001 * seconds_of_full) << budget;
    }
    EXPECT_FALSE(Compile(Job("auto", pipeline), full / 2).ok());
  }
}

// Prices are nominal, and what a rank needs at its peak is not the sum of what
// its units keep. So all units as one may be quicker than some that are listed,
// as on a machine whose memory is fast beside its products.
TEST(FitRecompute, IsNoSlowerThanAModeOfAllUnits) {
  int quicker = 0;
  for (const int pipeline : {1, 2}) {
    const int64_t full = Need(Job("full", pipeline));
    const int64_t none = Need(Job("none", pipeline));
    for (const double memory : {1.0, 50.0}) {
      const auto seconds = [&](const char* mode, int64_t budget) {
        const JobSpec job = Job(mode, pipeline);
        std::vector<WorkerDescription> workers =
            ExampleWorkers(RanksNeeded(job));
        for (WorkerDescription& worker : workers) {
          worker.mutable_budgets(0)->set_bytes(budget);
          Calibration& rates = *worker.mutable_calibration();
          rates.set_memory_bytes_per_second(memory *
                                            rates.memory_bytes_per_second());
          rates.set_elementwise_ops_per_second(
              memory * rates.elementwise_ops_per_second());
        }
        const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
        return plan.ok() ? plan->prediction().step_seconds() : INFINITY;
      };
      for (int64_t budget = none; budget >= full; budget -= (none - full) / 7) {
        const double listed = seconds("auto", budget);
        for (const char* const mode : {"selective", "full"}) {
          const double of_all = seconds(mode, budget);
          EXPECT_LE(listed, of_all * 1.000001)
              << mode << ", " << budget << " bytes, memory " << memory << ", "
              << pipeline << " stages";
          quicker += listed < of_all * 0.999;
        }
      }
    }
  }
  EXPECT_GT(quicker, 10) << "nothing is won by listing units";
}

// Of a pipeline's ranks only those that lack memory: in 1f1b the first ones
// hold more micro-batches.
TEST(FitRecompute, OnlyWhereMemoryIsShort) {
  const Plan whole = ExamplePlan(Job("none", 2));
  const int64_t first = BytesOf(whole.roles(0));
  const int64_t second = BytesOf(whole.roles(1));
  ASSERT_NE(first, second);
  const int small = first < second ? 0 : 1;
  const absl::StatusOr<Plan> plan =
      Compile(Job("auto", 2), std::max(first, second) - 1);
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (const Placement& placement : whole.roles(small).placements()) {
    EXPECT_EQ(plan->units(placement.unit()).recomputed_bytes(), 0);
  }
  EXPECT_GT(SecondsAgain(*plan), 0);
}

std::string Refusal(const JobSpec& job, int64_t budget) {
  return std::string(Compile(job, budget).status().message());
}

TEST(FitRecompute, ARefusalNamesTheModeThatFits) {
  for (const std::string mode : {"selective", "full"}) {
    JobSpec job = Job("none");
    job.mutable_training()->set_micro_batch_size(1);
    JobSpec other = job;
    other.mutable_memory()->mutable_recompute()->set_mode(mode);
    const int64_t budget = Need(other);
    const std::string refusal = Refusal(job, budget);
    EXPECT_THAT(refusal,
                HasSubstr(absl::StrCat("memory.recompute: ", mode, " (+")));
    EXPECT_THAT(refusal, HasSubstr("with which it fits and a step is "
                                   "predicted to take so much longer"));
    EXPECT_EQ(refusal.find("memory.recompute: selective") != std::string::npos,
              mode == "selective");
    EXPECT_TRUE(Compile(other, budget).ok());
  }
}

TEST(FitRecompute, ARefusalNamesTheStagesOfZeroThatFit) {
  JobSpec job = Job("none");
  job.mutable_parallelism()->set_data(2);
  job.mutable_training()->set_micro_batch_size(1);
  JobSpec dealt = job;
  dealt.mutable_parallelism()->set_zero(1);
  const int64_t budget = Need(dealt);
  ASSERT_LT(budget, Need(job));
  EXPECT_THAT(Refusal(job, budget), HasSubstr("parallelism.zero: 1 ("));
  // Asynchronous schedules have none.
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  job.mutable_training()->set_gradient_clipping(0);
  EXPECT_EQ(Refusal(job, Need(job) - 64).find("parallelism.zero"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
