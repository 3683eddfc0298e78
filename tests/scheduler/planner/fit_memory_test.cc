#include "scheduler/planner/fit_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/resolve.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/memory_settings.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<Plan> Compile(const JobSpec& job, const Room& room) {
  return CompilePlan(job, Workers(room));
}

TEST(FitMemory, ChoosesNothingWhereAllFits) {
  const Plan as_it_is = ExamplePlan(Job(MemorySpec()));
  const Room need = NeedOf(as_it_is);
  const absl::StatusOr<Plan> plan =
      Compile(AutoJob(), {.device = need.device, .host = 0, .nvme = 0});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->fingerprint(), as_it_is.fingerprint());
  EXPECT_EQ(plan->prediction().chosen_memory(), "nothing, as all fits");
  EXPECT_EQ(as_it_is.prediction().chosen_memory(), "");
}

// Where nothing but this tier of this field is open and has room.
TEST(FitMemory, TakesEachTier) {
  const Setting settings[] = {{.optimizer = "host"},  {.optimizer = "nvme"},
                              {.parameters = "host"}, {.parameters = "nvme"},
                              {.gradients = "host"},  {.activations = "host"},
                              {.activations = "nvme"}};
  const Room as_it_is = NeedOf(Setting());
  for (const Setting& setting : settings) {
    const MemorySpec wanted = SpecOf(setting);
    SCOPED_TRACE(wanted.ShortDebugString());
    const Room room = NeedOf(setting);
    ASSERT_LT(room.device, as_it_is.device);
    const absl::StatusOr<Plan> plan = Compile(AutoJob(), room);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const Room took = NeedOf(*plan);
    EXPECT_LE(took.device, room.device);
    EXPECT_LE(took.host, room.host);
    EXPECT_LE(took.nvme, room.nvme);
    // Only that.
    MemorySpec open = SpecOf(Setting());
    open.set_mode("auto");
    if (wanted.optimizer() != "device") open.clear_optimizer();
    if (wanted.parameters() != "device") open.clear_parameters();
    if (wanted.gradients() != "device") open.clear_gradients();
    if (wanted.activations() != "device") open.clear_activations();
    const absl::StatusOr<Plan> only = Compile(Job(open), room);
    ASSERT_TRUE(only.ok()) << only.status();
    MemorySpec chosen = only->job().memory();
    chosen.clear_chunk_megabytes();  // which may come with it
    chosen.clear_device_bytes();
    EXPECT_EQ(chosen.ShortDebugString(), wanted.ShortDebugString());
    EXPECT_THAT(
        only->prediction().chosen_memory(),
        AllOf(StartsWith("memory."), HasSubstr(" %); without it rank 0 "),
              HasSubstr("device memory needs")));
  }
}

// Of all units it would be more than is needed.
TEST(FitMemory, MakesAsLittleAgainAsFits) {
  const Room room = {.device = NeedOf({.recompute = "selective"}).device - 64,
                     .host = 0,
                     .nvme = 0};
  const absl::StatusOr<Plan> plan = Compile(AutoJob(), room);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const RecomputeSpec& recompute = plan->job().memory().recompute();
  EXPECT_EQ(recompute.mode(), "units");
  EXPECT_LT(recompute.units_size(), 12);
  EXPECT_THAT(plan->prediction().chosen_memory(),
              StartsWith("memory.recompute: auto (+"));
  const absl::StatusOr<Plan> full =
      Compile(Job(SpecOf({.recompute = "full"})), room);
  ASSERT_TRUE(full.ok()) << full.status();
  EXPECT_LT(plan->prediction().step_seconds(),
            full->prediction().step_seconds());
}

// The job in the plan is one that a user could have written.
TEST(FitMemory, LeavesAJobOfWhichNothingIsOpen) {
  const Room room = NeedOf({.recompute = "full", .optimizer = "host"});
  const absl::StatusOr<Plan> plan = Compile(AutoJob(), room);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->job().memory().has_mode());
  const absl::StatusOr<Plan> again = Compile(plan->job(), room);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->fingerprint(), plan->fingerprint());
  EXPECT_EQ(again->prediction().step_seconds(),
            plan->prediction().step_seconds());
}

// As that job would: the device was short, not the host.
TEST(FitMemory, WritesCheckpointsInTheBackgroundWhereThatFitsThen) {
  const auto saving = [](JobSpec job) {
    job.mutable_checkpoint()->set_directory("/c");
    job.mutable_checkpoint()->set_every(2);
    return job;
  };
  Room room = NeedOf({.recompute = "full"});
  ASSERT_LT(room.device, NeedOf(Setting()).device);
  MemorySpec again;
  again.mutable_recompute()->set_mode("auto");
  for (const bool has_room : {true, false}) {
    room.host = has_room ? kPlenty : 0;
    for (const JobSpec& job : {AutoJob(), Job(again)}) {
      SCOPED_TRACE(job.memory().ShortDebugString());
      const absl::StatusOr<Plan> plan = Compile(saving(job), room);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->job().checkpoint().background(), has_room);
    }
  }
}

// All settings are compiled, and what it took is beside the quickest of those
// that fit, whatever the budgets: between what all lies on the device takes and
// the least that anything takes of it.
TEST(FitMemory, FindsTheQuickestThatFitsOrNearly) {
  struct Tried {
    Setting setting;
    Room need;
    double seconds = 0;
  };
  std::vector<Tried> all;
  for (const Setting& setting : AllSettings()) {
    const absl::StatusOr<Plan> plan = Compile(Job(SpecOf(setting)), {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    all.push_back({setting, NeedOf(*plan), plan->prediction().step_seconds()});
  }
  const int64_t most = all.front().need.device;
  int64_t least = most;
  for (const Tried& tried : all) least = std::min(least, tried.need.device);
  int several = 0;
  for (const int64_t host : {kPlenty, most / 2}) {
    for (int part = 0; part <= 8; ++part) {
      const Room room = {.device = least + (most - least) * part / 8,
                         .host = host};
      SCOPED_TRACE(absl::StrCat(room.device, " ", room.host));
      double quickest = std::numeric_limits<double>::infinity();
      int fewest = 5;
      for (const Tried& tried : all) {
        if (!FitsIn(tried.need, room)) continue;
        quickest = std::min(quickest, tried.seconds);
        fewest = std::min(fewest, tried.setting.changes());
      }
      const absl::StatusOr<Plan> plan = Compile(AutoJob(), room);
      ASSERT_EQ(plan.ok(), std::isfinite(quickest)) << plan.status();
      if (!plan.ok()) continue;
      EXPECT_TRUE(FitsIn(NeedOf(*plan), room));
      EXPECT_LE(plan->prediction().step_seconds(), 1.02 * quickest)
          << plan->prediction().chosen_memory();
      several += fewest > 1;
    }
  }
  EXPECT_GT(several, 2) << "single changes were enough";
}

TEST(FitMemory, SaysWhatComesClosestWhereNothingFits) {
  Room least = NeedOf({.recompute = "full", .optimizer = "host"});
  least.host = NeedOf(Setting{.optimizer = "host"}).host;
  least.nvme = 0;
  least.device /= 3;
  const absl::Status status = Compile(AutoJob(), least).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              AllOf(StartsWith("memory: auto finds nothing that fits; closest "
                               "is memory."),
                    HasSubstr("memory needs"), HasSubstr("would do")));
  // Nothing is open, and no tier is below the device.
  MemorySpec closed = SpecOf(Setting());
  closed.set_mode("auto");
  EXPECT_THAT(std::string(Compile(Job(closed), least).status().message()),
              Not(HasSubstr("closest")));
}

// What is given stays.
TEST(FitMemory, ChoosesOnlyWhatIsOpen) {
  MemorySpec given;
  given.set_mode("auto");
  given.set_activations("host");
  given.mutable_recompute()->set_mode("none");
  const Room room = NeedOf({.optimizer = "host", .activations = "host"});
  const absl::StatusOr<Plan> plan = Compile(Job(given), room);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->job().memory().activations(), "host");
  EXPECT_EQ(plan->job().memory().recompute().mode(), "none");
}

// What it lets rest below the device stays there while there is room.
TEST(FitMemory, TakesChunks) {
  MemorySpec open = SpecOf(Setting());
  open.set_mode("auto");
  open.clear_parameters();
  const Setting below = {.parameters = "host"};
  const Room all = NeedOf(Setting());
  const Room least = NeedOf(below);
  const Room room = {.device = (least.device + all.device) / 2,
                     .host = least.host};
  const absl::StatusOr<Plan> plan = Compile(Job(open), room);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->job().memory().chunk_megabytes(), "auto");
  EXPECT_GT(NeedOf(*plan).device, least.device);
  EXPECT_LE(NeedOf(*plan).device, room.device);
  EXPECT_THAT(plan->prediction().chosen_memory(),
              StartsWith("memory.parameters: host and "
                         "memory.chunk_megabytes: auto (+"));
  const absl::StatusOr<Plan> without = Compile(Job(SpecOf(below)), room);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_LT(plan->prediction().step_seconds(),
            without->prediction().step_seconds());
  // The job's own, as far as it says.
  open.set_chunk_megabytes("2");
  open.set_device_bytes(least.device);
  const absl::StatusOr<Plan> given = Compile(Job(open), room);
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->job().memory().chunk_megabytes(), "2");
  EXPECT_EQ(given->job().memory().device_bytes(), least.device);
  EXPECT_EQ(NeedOf(*given).device, least.device);
  EXPECT_THAT(given->prediction().chosen_memory(),
              StartsWith("memory.parameters: host (+"));
  // Of nothing where all fits.
  const absl::StatusOr<Plan> fits = Compile(Job(open), all);
  ASSERT_TRUE(fits.ok()) << fits.status();
  EXPECT_FALSE(fits->job().memory().has_chunk_megabytes());
}

// Over the ranks of a pipeline and with replicas.
TEST(FitMemory, OfManyRanks) {
  JobSpec job = AutoJob();
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_data(2);
  JobSpec as_it_is = job;
  as_it_is.clear_memory();
  const Room need = NeedOf(ExamplePlan(as_it_is));
  const absl::StatusOr<Plan> plan =
      CompilePlan(job, Workers({.device = need.device * 6 / 10, .nvme = 0}, 4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(NeedOf(*plan).device, need.device * 6 / 10);
}

TEST(FitMemory, RefusesOtherModesAndWhatIsWrongBesideIt) {
  JobSpec job = AutoJob();
  EXPECT_TRUE(ResolveJob(job).ok());
  job.mutable_memory()->set_mode("atuo");
  EXPECT_THAT(std::string(ResolveJob(job).status().message()),
              StartsWith("memory: there is no \"atuo\"; use auto"));
  job.mutable_memory()->set_mode("auto");
  job.mutable_memory()->set_gradients("nvme");
  EXPECT_THAT(std::string(ResolveJob(job).status().message()),
              StartsWith("memory.gradients: "));
  // Of what may come to rest below the device there may be chunks.
  job.mutable_memory()->set_gradients("device");
  job.mutable_memory()->set_chunk_megabytes("64");
  EXPECT_TRUE(ResolveJob(job).ok());
  job.mutable_memory()->set_parameters("device");
  EXPECT_TRUE(ResolveJob(job).ok());
  job.mutable_memory()->set_activations("device");
  EXPECT_THAT(std::string(ResolveJob(job).status().message()),
              StartsWith("memory.chunk_megabytes: "));
}

}  // namespace
}  // namespace troupe
