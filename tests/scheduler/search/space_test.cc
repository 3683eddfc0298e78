#include "scheduler/search/space.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/ranks_needed.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

JobSpec OpenJob() {
  JobSpec job = ExampleJob({.blocks = 6});
  job.clear_parallelism();
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_training()->set_global_batch_size(8);
  job.mutable_training()->clear_micro_batch_size();
  return job;
}

std::vector<Candidate> AllOf(const Space& space, int ranks) {
  std::vector<Candidate> all;
  Reasons reasons;
  for (const Candidate& division : space.DivisionsOf(ranks, reasons)) {
    for (Candidate& candidate : space.CandidatesOf(division)) {
      all.push_back(std::move(candidate));
    }
  }
  return all;
}

std::set<std::string> SchedulesOf(const std::vector<Candidate>& candidates) {
  std::set<std::string> names;
  for (const Candidate& candidate : candidates) {
    names.insert(candidate.parallelism.pipeline_schedule());
  }
  return names;
}

// What would be too long on one rank is not on many.
TEST(Space, ABatchMayWantManyRanks) {
  JobSpec job = OpenJob();
  job.mutable_training()->set_global_batch_size(1 << 20);
  EXPECT_EQ(CheckOpenJob(job), absl::OkStatus());
  job.mutable_training()->set_micro_batch_size(1);
  EXPECT_EQ(CheckOpenJob(job), absl::OkStatus());
  job.mutable_training()->set_micro_batch_size(3);
  EXPECT_FALSE(CheckOpenJob(job).ok());
}

TEST(Space, HasEachCandidateOnceAndAllRanks) {
  const JobSpec job = OpenJob();
  const Space space(job);
  for (const int ranks : {1, 2, 4, 6, 8}) {
    std::set<std::string> seen;
    for (const Candidate& candidate : AllOf(space, ranks)) {
      const JobSpec chosen = JobOf(job, candidate);
      EXPECT_EQ(RanksNeeded(chosen), ranks);
      EXPECT_FALSE(chosen.parallelism().has_mode());
      EXPECT_TRUE(seen.insert(chosen.SerializeAsString()).second)
          << chosen.parallelism().ShortDebugString();
    }
  }
}

// A row that is in no table but the test's: nothing else names it.
TEST(Space, ANewScheduleIsSearched) {
  const JobSpec job = OpenJob();
  std::vector<Pipeline> pipelines = Pipelines();
  EXPECT_THAT(SchedulesOf(AllOf(Space(job, pipelines), 4)),
              Not(Contains("upside_down")));
  pipelines.push_back({.name = "upside_down",
                       .summary = "of this test",
                       .order = FindPipeline("1f1b").value().order,
                       .tried_stages = {1, 2}});
  const std::vector<Candidate> all = AllOf(Space(job, pipelines), 4);
  EXPECT_THAT(SchedulesOf(all), Contains("upside_down"));
  std::set<int> stages;
  for (const Candidate& candidate : all) {
    if (candidate.parallelism.pipeline_schedule() != "upside_down") continue;
    stages.insert(candidate.parallelism.virtual_stages());
  }
  EXPECT_THAT(stages, ElementsAre(1, 2));
}

// Late gradients train something else.
TEST(Space, TriesNoScheduleThatIsAsynchronous) {
  const JobSpec job = OpenJob();
  for (const std::string& name : SchedulesOf(AllOf(Space(job), 4))) {
    if (name.empty()) continue;
    EXPECT_FALSE(FindPipeline(name).value().asynchronous) << name;
  }
}

TEST(Space, TriesEachNumberOfAFewWorkers) {
  JobSpec job = OpenJob();
  EXPECT_THAT(Space(job).RankCounts(5), ElementsAre(5, 4, 3, 2, 1));
  job.mutable_parallelism()->set_tensor(2);
  EXPECT_THAT(Space(job).RankCounts(5), ElementsAre(4, 2));
}

}  // namespace
}  // namespace troupe
