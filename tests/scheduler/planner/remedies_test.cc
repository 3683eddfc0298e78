#include "scheduler/planner/remedies.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"
#include "tests/scheduler/planner/memory_settings.h"

namespace troupe {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

absl::StatusOr<Plan> Compile(const JobSpec& job, const Room& room) {
  return CompilePlan(job, Workers(room));
}

// However many there would be to try, and whether or not anything fits.
TEST(Remedies, CompilesFewPlans) {
  for (const auto& [data, hopeless] :
       {std::make_pair(1, false), std::make_pair(1, true),
        std::make_pair(2, false), std::make_pair(2, true)}) {
    SCOPED_TRACE(absl::StrCat(data, hopeless ? " hopeless" : ""));
    JobSpec job = Job(MemorySpec());
    job.mutable_parallelism()->set_data(data);
    JobSpec least = job;
    *least.mutable_memory() = SpecOf({.recompute = "full",
                                      .optimizer = "nvme",
                                      .parameters = "nvme",
                                      .gradients = "host",
                                      .activations = "nvme"});
    Room room = NeedOf(ExamplePlan(least));
    if (hopeless) room.device /= 4;
    int compiled = 0;
    const BuildPlan build = [&](const JobSpec& changed) {
      ++compiled;
      return absl::StatusOr<Plan>(ExamplePlan(changed));
    };
    const auto remedies =
        FindRemedies(ExamplePlan(job), Workers(room, data), build,
                     {.may_change = [](const std::string&) { return true; },
                      .changes_max = 6,
                      .goes_on = true});
    ASSERT_TRUE(remedies.ok()) << remedies.status();
    EXPECT_EQ(remedies->fitting.empty(), hopeless);
    EXPECT_GT(compiled, 9);
    EXPECT_LE(compiled, 32);
  }
}

// Rooms in which little but this fits, where changes meet: copies of what moves
// are fewer where less is kept, what ZeRO deals is on no host twice, and what
// one field puts there leaves less for another's.
TEST(Remedies, FindsWhatFitsOnlyTogether) {
  const std::pair<int, Setting> settings[] = {
      {1, {.recompute = "full", .activations = "nvme"}},
      {1,
       {.recompute = "full",
        .optimizer = "host",
        .parameters = "host",
        .gradients = "host"}},
      {2,
       {.optimizer = "host",
        .parameters = "host",
        .gradients = "host",
        .activations = "nvme"}},
      {2,
       {.recompute = "full",
        .optimizer = "nvme",
        .parameters = "nvme",
        .gradients = "host",
        .activations = "host"}}};
  for (const auto& [data, setting] : settings) {
    JobSpec job = Job(MemorySpec());
    job.mutable_parallelism()->set_data(data);
    JobSpec fitting = job;
    *fitting.mutable_memory() = SpecOf(setting);
    SCOPED_TRACE(fitting.memory().ShortDebugString());
    const Room room = NeedOf(ExamplePlan(fitting));
    int compiled = 0;
    const BuildPlan build = [&](const JobSpec& changed) {
      ++compiled;
      return absl::StatusOr<Plan>(ExamplePlan(changed));
    };
    const auto remedies =
        FindRemedies(ExamplePlan(job), Workers(room, data), build,
                     {.may_change = [](const std::string&) { return true; },
                      .changes_max = 6,
                      .goes_on = true});
    ASSERT_TRUE(remedies.ok()) << remedies.status();
    EXPECT_FALSE(remedies->fitting.empty());
    EXPECT_LE(compiled, 32);
  }
}

// The cheapest first, ZeRO and `memory` by one measure.
TEST(Remedies, AreSortedByWhatTheyCost) {
  JobSpec job = Job(MemorySpec());
  job.mutable_parallelism()->set_data(2);
  const Plan plan = ExamplePlan(job);
  const BuildPlan build = [](const JobSpec& changed) {
    return absl::StatusOr<Plan>(ExamplePlan(changed));
  };
  const auto remedies = FindRemedies(
      plan, Workers({.device = NeedOf(plan).device * 9 / 10}, 2), build,
      {.may_change = [](const std::string&) { return true; },
       .changes_max = 6,
       .goes_on = true});
  ASSERT_TRUE(remedies.ok()) << remedies.status();
  std::set<std::string> fields;
  double longer = -1;
  for (const Remedy& remedy : remedies->fitting) {
    EXPECT_GE(remedy.longer, longer);
    longer = remedy.longer;
    for (const FieldChange& change : remedy.changes) {
      fields.insert(change.field);
    }
  }
  EXPECT_TRUE(fields.contains(kZeroField));
  EXPECT_TRUE(fields.contains(kRecomputeField));
  EXPECT_TRUE(fields.contains("memory.optimizer"));
}

// A refusal names two changes where no single one suffices.
TEST(Remedies, ARefusalNamesTwoChangesWhereOneIsNotEnough) {
  const Room both = NeedOf({.recompute = "full", .optimizer = "host"});
  const Room room = {.device = both.device, .host = both.host, .nvme = 0};
  JobSpec job = Job(SpecOf(Setting()));
  const std::string refusal(Compile(job, room).status().message());
  EXPECT_THAT(refusal, AllOf(HasSubstr(" and memory."),
                             HasSubstr("with which it fits")));
  JobSpec taken = Job(SpecOf({.recompute = "full", .optimizer = "host"}));
  EXPECT_TRUE(Compile(taken, room).ok());
  for (const Setting& setting : AllSettings()) {
    if (setting.changes() > 1) continue;
    EXPECT_FALSE(Compile(Job(SpecOf(setting)), room).ok());
  }
}

TEST(Remedies, ARefusalNamesMoreChangesWhereTwoAreNotEnough) {
  const Room room = NeedOf({.recompute = "full",
                            .optimizer = "host",
                            .parameters = "host",
                            .gradients = "host"});
  for (const Setting& setting : AllSettings()) {
    if (setting.changes() > 2) continue;
    ASSERT_FALSE(Compile(Job(SpecOf(setting)), room).ok());
  }
  const std::string refusal(
      Compile(Job(SpecOf(Setting())), room).status().message());
  EXPECT_THAT(refusal,
              ContainsRegex("use memory.* and .* and .*, with which it fits"));
  EXPECT_TRUE(Compile(AutoJob(), room).ok());
}

JobSpec RecoveringJob() {
  JobSpec job = Job(MemorySpec());
  job.mutable_parallelism()->set_data(2);
  job.mutable_recovery()->set_copies(1);
  return job;
}

// Last, whatever they save of a step: they are not there for speed.
TEST(Remedies, OffersToGoWithoutCopiesOfTheState) {
  const Room room = NeedOf(ExamplePlan(RecoveringJob()));
  JobSpec without = RecoveringJob();
  without.mutable_recovery()->set_copies(0);
  const Room less = NeedOf(ExamplePlan(without));
  ASSERT_LT(less.host, room.host);
  const std::vector<WorkerDescription> workers =
      Workers({.device = room.device, .host = room.host - 1, .nvme = 0}, 2);
  const absl::Status refusal = CompilePlan(RecoveringJob(), workers).status();
  EXPECT_THAT(std::string(refusal.message()),
              AllOf(HasSubstr("state_copies"), HasSubstr("(overflows here)"),
                    HasSubstr("recovery.copies: 0 ("),
                    HasSubstr(" %, and a lost worker costs what no checkpoint "
                              "has), with which it fits")));
  EXPECT_TRUE(CompilePlan(without, workers).ok());
  // It does not go by itself.
  JobSpec open = RecoveringJob();
  open.mutable_memory()->set_mode("auto");
  const auto chosen = CompilePlan(
      open, Workers({.device = room.device, .host = less.host, .nvme = 0}, 2));
  if (chosen.ok()) EXPECT_EQ(chosen->job().recovery().copies(), 1);
  // Where they are no part of what is missing, they are not spoken of.
  const absl::Status device =
      CompilePlan(RecoveringJob(),
                  Workers({.device = room.device - 1, .host = room.host}, 2))
          .status();
  EXPECT_THAT(std::string(device.message()),
              ::testing::Not(HasSubstr("recovery.copies")));
}

}  // namespace
}  // namespace troupe
