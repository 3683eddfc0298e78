#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/memory_settings.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

JobSpec WithZero(JobSpec job, int zero) {
  job.mutable_parallelism()->set_zero(zero);
  return job;
}

// Of two replicas, or of two ranks that cut each sequence.
JobSpec OverTwoRanks(JobSpec job, bool sequences = false) {
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  sequences ? parallelism.set_context(2) : parallelism.set_data(2);
  return job;
}

// Nothing of `memory` is open, so that ZeRO is all that may be chosen.
JobSpec OnlyZeroIsOpen(bool sequences) {
  MemorySpec closed = SpecOf(Setting());
  closed.set_mode("auto");
  return OverTwoRanks(Job(closed), sequences);
}

TEST(FitMemoryWithZero, TakesZeroWhereTheJobDoesNotSay) {
  for (const bool sequences : {false, true}) {
    const JobSpec open = OnlyZeroIsOpen(sequences);
    JobSpec plain = open;
    plain.clear_memory();
    int64_t before = NeedOf(ExamplePlan(plain)).device;
    for (const int zero : {1, 2, 3}) {
      SCOPED_TRACE(absl::StrCat(zero, sequences ? " of sequences" : ""));
      const Room room = {
          .device = NeedOf(ExamplePlan(WithZero(plain, zero))).device,
          .host = 0,
          .nvme = 0};
      ASSERT_LT(room.device, before);
      before = room.device;
      const std::vector<WorkerDescription> workers = Workers(room, 2);
      const absl::StatusOr<Plan> plan = CompilePlan(open, workers);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->job().parallelism().zero(), zero);
      EXPECT_THAT(
          plan->prediction().chosen_memory(),
          AllOf(StartsWith(absl::StrCat("parallelism.zero: ", zero, " (")),
                HasSubstr(" %); without it rank 0 ")));
      // As a user could have written it.
      const absl::StatusOr<Plan> written =
          CompilePlan(WithZero(plain, zero), workers);
      ASSERT_TRUE(written.ok()) << written.status();
      EXPECT_EQ(plan->fingerprint(), written->fingerprint());
      // What is given stays, 0 too.
      EXPECT_FALSE(CompilePlan(WithZero(open, 0), workers).ok());
    }
  }
}

TEST(FitMemoryWithZero, LeavesZeroAsGivenAndTakesSomethingElse) {
  const JobSpec plain = OverTwoRanks(Job(MemorySpec()));
  const std::vector<WorkerDescription> workers =
      Workers({.device = NeedOf(ExamplePlan(WithZero(plain, 1))).device}, 2);
  for (const int zero : {0, 1}) {
    const absl::StatusOr<Plan> plan =
        CompilePlan(WithZero(OverTwoRanks(AutoJob()), zero), workers);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->job().parallelism().zero(), zero);
    EXPECT_THAT(plan->prediction().chosen_memory(),
                zero == 0 ? StartsWith("memory.") : StartsWith("nothing"));
  }
  // Weights of several ages are whole on each rank.
  JobSpec asynchronous = OnlyZeroIsOpen(false);
  asynchronous.mutable_parallelism()->set_pipeline(2);
  asynchronous.mutable_parallelism()->set_pipeline_schedule("pipedream");
  asynchronous.mutable_training()->set_gradient_clipping(0);
  JobSpec as_it_is = asynchronous;
  as_it_is.clear_memory();
  const int64_t need = NeedOf(ExamplePlan(as_it_is)).device;
  const absl::Status status =
      CompilePlan(asynchronous, Workers({.device = need - 64}, 4)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("memory needs"), Not(HasSubstr("closest")),
                    Not(HasSubstr("parallelism.zero"))));
}

// Beside all that could have been chosen, ZeRO among it.
TEST(FitMemoryWithZero, TakesTheCheapestThatFitsWithZero) {
  MemorySpec open = SpecOf(Setting());
  open.set_mode("auto");
  open.clear_recompute();
  open.clear_optimizer();
  struct Tried {
    Room need;
    double seconds = 0;
  };
  std::vector<Tried> all;
  for (const char* recompute : {"none", "selective", "full"}) {
    for (const char* optimizer : {"device", "host"}) {
      for (const int zero : {0, 1, 2, 3}) {
        const JobSpec job = WithZero(
            OverTwoRanks(
                Job(SpecOf({.recompute = recompute, .optimizer = optimizer}))),
            zero);
        const absl::StatusOr<Plan> plan = CompilePlan(job, Workers({}, 2));
        ASSERT_TRUE(plan.ok()) << plan.status();
        all.push_back({NeedOf(*plan), plan->prediction().step_seconds()});
      }
    }
  }
  const int64_t most = all.front().need.device;
  int64_t least = most;
  for (const Tried& tried : all) least = std::min(least, tried.need.device);
  int dealt = 0;
  for (int part = 0; part < 8; ++part) {
    const Room room = {.device = least + (most - least) * part / 8, .nvme = 0};
    SCOPED_TRACE(room.device);
    double quickest = std::numeric_limits<double>::infinity();
    for (const Tried& tried : all) {
      if (!FitsIn(tried.need, room)) continue;
      quickest = std::min(quickest, tried.seconds);
    }
    const absl::StatusOr<Plan> plan =
        CompilePlan(OverTwoRanks(Job(open)), Workers(room, 2));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->prediction().step_seconds(), 1.02 * quickest)
        << plan->prediction().chosen_memory();
    dealt += plan->job().parallelism().zero() > 0;
  }
  EXPECT_GT(dealt, 2);
}

}  // namespace
}  // namespace troupe
