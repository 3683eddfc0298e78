#include "scheduler/planner/gather_ahead.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/buffer_kind.h"
#include "proto/plan/memory.h"
#include "proto/plan/roles.h"
#include "scheduler/planner/explain.h"
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

std::vector<WorkerDescription> WorkersWith(int64_t device_bytes,
                                           int count = 2) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(device_bytes);
    worker.mutable_calibration()->mutable_loopback()->set_bytes_per_second(2e8);
  }
  return workers;
}

constexpr int64_t kPlenty = int64_t{1} << 30;

int64_t UnshardedBytes(const Plan& plan, int role = 0) {
  int64_t bytes = 0;
  for (const MemoryItem& item : MemoryItems(plan.roles(role))) {
    if (item.item() == LineItem(Buffer::UNSHARDED_PARAMETERS)) {
      bytes += item.bytes();
    }
  }
  return bytes;
}

double Seconds(const Plan& plan) { return plan.prediction().step_seconds(); }

// Fails where there is none.
Plan PlanOf(const JobSpec& job, const std::vector<WorkerDescription>& workers) {
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  EXPECT_TRUE(plan.ok()) << plan.status();
  return plan.ok() ? *plan : Plan();
}

int64_t DeviceBytes(const Plan& plan) {
  int64_t most = 0;
  for (const Role& role : plan.roles()) {
    most = std::max(most, BytesIn(role, DEVICE));
  }
  return most;
}

Plan PlanIn(int64_t device_bytes) {
  return PlanOf(UnevenJob(), WorkersWith(device_bytes));
}

JobSpec With(JobSpec job, int64_t unsharded_bytes) {
  job.mutable_memory()->set_unsharded_bytes(unsharded_bytes);
  return job;
}

Plan PlanWith(int64_t unsharded_bytes) {
  return PlanOf(With(UnevenJob(), unsharded_bytes), WorkersWith(kPlenty));
}

Plan OneAhead(const JobSpec& job) {
  return ExampleDraft(job, "assign slots").plan;
}

TEST(GatherAhead, RunsFartherWhereThereIsRoomAndAStepIsShorterSo) {
  const Plan nearest = PlanWith(0);
  const Plan farther = PlanIn(kPlenty);
  EXPECT_GT(UnitsAhead(farther), UnitsAhead(nearest));
  EXPECT_GT(UnshardedBytes(farther), UnshardedBytes(nearest));
  EXPECT_LT(Seconds(farther), 0.95 * Seconds(nearest));
  EXPECT_THAT(farther.prediction().gathers(),
              AllOf(StartsWith("up to "), HasSubstr(" ahead of use, in "),
                    HasSubstr("a step would be longer by ")));
  // A user may say as much.
  const Plan given = PlanWith(UnshardedBytes(farther));
  EXPECT_LE(UnshardedBytes(given), UnshardedBytes(farther));
  EXPECT_LE(Seconds(given), 1.001 * Seconds(farther));
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
    EXPECT_LE(Seconds(plan), 1.02 * seconds) << budget;
    seconds = std::min(seconds, Seconds(plan));
  }
  EXPECT_LT(seconds, 0.99 * longest);
}

// And there, as far as that goes: a large unit's slot has room for small ones.
TEST(GatherAhead, ATightBudgetHasNoRoomForAStepOfWork) {
  const int64_t a_step_ahead = DeviceBytes(OneAhead(UnevenJob()));
  const Plan when_used = PlanWith(0);
  const int64_t least = DeviceBytes(when_used);
  ASSERT_LT(least, a_step_ahead);
  for (const int64_t budget : {least, (least + a_step_ahead) / 2}) {
    const Plan plan = PlanIn(budget);
    EXPECT_LE(DeviceBytes(plan), budget);
    EXPECT_LE(Seconds(plan), Seconds(when_used));
  }
}

// Stages that have little room take no other's, and give it none.
TEST(GatherAhead, EachStageHasTheRoomOfItsOwnDevices) {
  JobSpec job = UnevenJob();
  job.mutable_parallelism()->set_pipeline(2);
  for (const int units : {7, 3}) job.mutable_parallelism()->add_stages(units);
  const std::vector<WorkerDescription> plenty = WorkersWith(kPlenty, 4);
  const Plan one_ahead = OneAhead(job);
  const Plan when_used = PlanOf(With(job, 0), plenty);
  const double farthest = Seconds(PlanOf(job, plenty));
  ASSERT_EQ(when_used.roles_size(), 2);
  for (const int tight : {0, 1}) {
    SCOPED_TRACE(tight);
    const int64_t least = BytesIn(when_used.roles(tight), DEVICE);
    ASSERT_LT(least, BytesIn(one_ahead.roles(tight), DEVICE));
    std::vector<WorkerDescription> workers = plenty;
    for (const int rank : RanksOf(when_used.mesh(), when_used.roles(tight))) {
      workers[rank].mutable_budgets(0)->set_bytes(least);
    }
    const Plan plan = PlanOf(job, workers);
    EXPECT_LE(BytesIn(plan.roles(tight), DEVICE), least);
    EXPECT_GE(UnshardedBytes(plan, 1 - tight),
              UnshardedBytes(one_ahead, 1 - tight));
    EXPECT_LE(Seconds(plan), Seconds(when_used));
    EXPECT_GE(Seconds(plan), 0.999 * farthest);
  }
}

// What is gathered earlier is fetched earlier, and lies there in slices, too.
TEST(GatherAhead, RoomIsNotTakenTwiceWhereParametersRestOnTheHost) {
  JobSpec job = UnevenJob();
  job.mutable_memory()->set_parameters("host");
  const auto workers = [](int64_t device_bytes) {
    std::vector<WorkerDescription> with_host = WorkersWith(device_bytes);
    for (WorkerDescription& worker : with_host) {
      TierBudget& host = *worker.add_budgets();
      host.set_tier(HOST);
      host.set_bytes(kPlenty);
    }
    return with_host;
  };
  const Plan when_used = PlanOf(With(job, 0), workers(kPlenty));
  const int64_t least = DeviceBytes(when_used);
  const int64_t most = DeviceBytes(PlanOf(job, workers(kPlenty)));
  double seconds = Seconds(when_used);
  for (int i = 0; i <= 8; ++i) {
    const int64_t budget = least + (most - least) * i / 8;
    const Plan plan = PlanOf(job, workers(budget));
    EXPECT_LE(DeviceBytes(plan), budget);
    EXPECT_LE(Seconds(plan), 1.02 * seconds) << budget;
    seconds = std::min(seconds, Seconds(plan));
  }
  EXPECT_LT(seconds, 0.97 * Seconds(when_used));
}

// From the disk by way of the host, where each has a copy, too.
TEST(GatherAhead, TheHostHasToHaveRoomAsWell) {
  JobSpec job = UnevenJob();
  job.mutable_memory()->set_parameters("nvme");
  const auto workers = [](int64_t host_bytes) {
    std::vector<WorkerDescription> with_tiers = WorkersWith(kPlenty);
    for (WorkerDescription& worker : with_tiers) {
      for (const auto& [tier, bytes] :
           {std::make_pair(HOST, host_bytes), std::make_pair(NVME, kPlenty)}) {
        TierBudget& budget = *worker.add_budgets();
        budget.set_tier(tier);
        budget.set_bytes(bytes);
      }
    }
    return with_tiers;
  };
  const int64_t least =
      BytesIn(PlanOf(With(job, 0), workers(kPlenty)).roles(0), HOST);
  ASSERT_GT(BytesIn(PlanOf(job, workers(kPlenty)).roles(0), HOST), least);
  EXPECT_LE(BytesIn(PlanOf(job, workers(least)).roles(0), HOST), least);
}

// With little room for gathers, what is made again makes room.
TEST(GatherAhead, OtherSettingsMayBeQuickerThanGathersThatWait) {
  const JobSpec job = UnevenJob();
  JobSpec selective = job;
  selective.mutable_memory()->mutable_recompute()->set_mode("selective");
  const std::vector<WorkerDescription> workers =
      WorkersWith(DeviceBytes(PlanWith(0)));
  const Plan as_it_is = PlanOf(job, workers);
  const Plan with_selective = PlanOf(selective, workers);
  ASSERT_LT(Seconds(with_selective), 0.95 * Seconds(as_it_is));
  JobSpec recompute = job;
  recompute.mutable_memory()->mutable_recompute()->set_mode("auto");
  EXPECT_LE(Seconds(PlanOf(recompute, workers)),
            1.005 * Seconds(with_selective));
  // And where something is made again anyway.
  const std::vector<WorkerDescription> fewer =
      WorkersWith(DeviceBytes(PlanWith(0)) - 1);
  EXPECT_LE(Seconds(PlanOf(recompute, fewer)),
            1.005 * Seconds(PlanOf(selective, fewer)));
  JobSpec all = job;
  all.mutable_memory()->set_mode("auto");
  const Plan chosen = PlanOf(all, workers);
  EXPECT_LE(Seconds(chosen), 1.005 * Seconds(with_selective));
  EXPECT_THAT(chosen.prediction().chosen_memory(),
              HasSubstr("; without it all fits, with gathers up to "));
}

// In other lines gathers take all the room that makes a step shorter, though
// less may do.
TEST(GatherAhead, TheJobsLineOfAnExplanationIsItsPlan) {
  const std::vector<WorkerDescription> workers = WorkersWith(kPlenty);
  const auto quick = TryPlan(UnevenJob(), workers, GatherRoom::kAll);
  ASSERT_TRUE(quick.ok()) << quick.status();
  const int64_t bytes = DeviceBytes(PlanIn(kPlenty));
  ASSERT_LT(bytes, DeviceBytes(*quick));
  const auto explanation = Explain(UnevenJob(), workers);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  int of_job = 0;
  for (const ExplainedWay& way : explanation->ways()) {
    if (!way.fields().is_job()) continue;
    ++of_job;
    EXPECT_EQ(way.memory_bytes(), bytes);
  }
  EXPECT_EQ(of_job, 1);
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
  EXPECT_EQ(UnshardedBytes(*plan), UnshardedBytes(OneAhead(UnevenJob())));
  EXPECT_THAT(plan->prediction().gathers(), StartsWith("up to "));
}

// More bytes make no longer step, however little more, and no more are taken
// than are of use.
TEST(GatherAhead, TakesNoMoreThanIsGiven) {
  const Plan one_ahead = OneAhead(UnevenJob());
  const int64_t least = UnshardedBytes(PlanWith(0));
  const int64_t most = UnshardedBytes(PlanWith(kPlenty));
  ASSERT_GT(most, UnshardedBytes(one_ahead));
  double seconds = Seconds(PlanWith(0));
  const double longest = seconds;
  for (int i = 0; i <= 16; ++i) {
    const int64_t given = least + (most - least) * i / 16;
    const Plan plan = PlanWith(given);
    EXPECT_LE(UnshardedBytes(plan), given);
    EXPECT_LE(Seconds(plan), 1.02 * seconds) << given;
    seconds = std::min(seconds, Seconds(plan));
  }
  EXPECT_LT(seconds, 0.95 * longest);
  EXPECT_EQ(UnshardedBytes(PlanWith(int64_t{1} << 50)), most);
  // And where so much does not fit, what does is taken.
  EXPECT_LE(DeviceBytes(PlanOf(With(UnevenJob(), int64_t{1} << 50),
                               WorkersWith(DeviceBytes(one_ahead)))),
            DeviceBytes(one_ahead));
}

TEST(GatherAhead, SaysWhereWhatIsUsedTakesMoreThanIsGiven) {
  const Plan plan = PlanWith(1);
  EXPECT_EQ(UnshardedBytes(plan), UnshardedBytes(PlanWith(0)));
  EXPECT_THAT(plan.prediction().gathers(),
              HasSubstr(", more than memory.unsharded_bytes: 1, for so much is "
                        "whole while it is used"));
}

TEST(GatherAhead, LeavesWhatIsGivenAndWhatIsNotGathered) {
  EXPECT_TRUE(PlanWith(0).job().memory().has_unsharded_bytes());
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
