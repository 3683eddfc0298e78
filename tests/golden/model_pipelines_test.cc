// Plans with pipelines: all schedules, over models and meshes, compile and pass
// every check; and what follows from a schedule is in the plan.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/check_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/roles.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

JobSpec PipelineJob(const std::string& schedule, int pipeline, int data,
                    int micro_batches) {
  JobSpec job =
      ExampleJob({.data = data, .micro_batches = micro_batches, .blocks = 14});
  job.mutable_parallelism()->set_pipeline(pipeline);
  job.mutable_parallelism()->set_pipeline_schedule(schedule);
  job.mutable_checkpoint()->set_directory("checkpoints");
  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(5);
  return job;
}

absl::StatusOr<Plan> Compile(const JobSpec& job) {
  return CompilePlan(job, ExampleWorkers(RanksNeeded(job)));
}

TEST(PipelinePlan, EverySchedulePassesTheChecks) {
  for (const Pipeline& schedule : Pipelines()) {
    for (const bool tied : {true, false}) {
      for (const int pipeline : {1, 2, 4}) {
        for (const int data : {1, 2}) {
          for (const int micro_batches : {4, 8}) {
            JobSpec job = PipelineJob(std::string(schedule.name), pipeline,
                                      data, micro_batches);
            job.mutable_model()->set_tie_word_embeddings(tied);
            const auto plan = Compile(job);
            if (pipeline == 1 && schedule.name == "chimera") {
              EXPECT_THAT(plan.status().message(),
                          HasSubstr("parallelism.pipeline: chimera"));
              continue;
            }
            EXPECT_TRUE(plan.ok())
                << schedule.name << " " << pipeline << " x " << data << ", "
                << micro_batches << ", tied " << tied << ": "
                << plan.status().message().substr(0, 2000);
          }
        }
      }
    }
  }
}

TEST(PipelinePlan, AOneRankPlanIsWhatItWas) {
  JobSpec job = ExampleJob({.micro_batches = 2});
  const Plan plan = ExamplePlan(job);
  EXPECT_THAT(ProgramWords(plan, 0, Program::TRAIN),
              HasSubstr("L m0 | L m1 | F u0 m0 | F u1 m0"));
  EXPECT_EQ(plan.stages_size(), 1);
}

TEST(PipelinePlan, TiedTablesAreHeldAtBothEnds) {
  const auto plan = Compile(PipelineJob("1f1b", 2, 2, 4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::set<int> holders;
  int group = -1;
  for (int p = 0; p < plan->roles_size(); ++p) {
    const Placement* const placement = FindPlacement(plan->roles(p), 0);
    if (placement == nullptr) continue;
    holders.insert(p);
    group = placement->parts(0).summed();
  }
  EXPECT_THAT(holders, ElementsAre(0, 1));
  EXPECT_THAT(MembersOf(plan->mesh(), plan->groups(group), 2),
              ElementsAre(0, 1, 2, 3));
}

TEST(PipelinePlan, TransfersStandWhereTheyAreReady) {
  JobSpec job = ExampleJob({.micro_batches = 2, .blocks = 2});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_model()->set_tie_word_embeddings(false);
  const auto plan = Compile(job);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_THAT(ProgramWords(*plan, 0, Program::TRAIN),
              HasSubstr("F u1 m0 | S u1 m0 p1 g1"));
  EXPECT_THAT(ProgramWords(*plan, 1, Program::TRAIN),
              HasSubstr("V u1 m0 p0 g1"));
  EXPECT_THAT(ProgramWords(*plan, 0, Program::TRAIN),
              HasSubstr("V u1 m0 p1 g2 grad"));
}

// What the paper calls weight stashing: rank r keeps P - r versions.
TEST(PipelinePlan, PipedreamKeepsVersions) {
  JobSpec job = PipelineJob("pipedream", 4, 1, 1);
  const auto plan = Compile(job);
  ASSERT_TRUE(plan.ok()) << plan.status().message().substr(0, 3000);
  for (int r = 0; r < 4; ++r) {
    int versions = 0;
    for (const Buffer& buffer :
         ProgramOf(const_cast<Plan&>(*plan), r, Program::TRAIN).buffers()) {
      if (buffer.kind() != Buffer::PARAMETERS) continue;
      versions = std::max(
          versions, std::max(1, plan->roles(r).slots(buffer.slot()).copies()));
    }
    EXPECT_EQ(versions, 4 - r);
  }
  EXPECT_EQ(plan->derived().report_lag(), 1);
  EXPECT_EQ(ProgramWords(*plan, 0, Program::REPORT), "A -1 g1");
}

}  // namespace
}  // namespace troupe
