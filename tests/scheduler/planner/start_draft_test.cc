#include "scheduler/planner/start_draft.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/mesh.h"
#include "scheduler/planner/planner.h"
#include "tests/scheduler/example_job.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::StartsWith;

TEST(StartDraft, LaysOutTheMesh) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 3}), "");
  EXPECT_EQ(MeshText(draft.plan.mesh()), "pipeline 1 x data 3");
  ASSERT_EQ(draft.plan.groups_size(), 1);
  EXPECT_EQ(draft.plan.groups(0).name(), "data");
  ASSERT_EQ(draft.plan.roles_size(), 1);
  EXPECT_EQ(draft.plan.roles(0).placements_size(), 4);
  EXPECT_EQ(draft.stage_units, (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
}

TEST(StartDraft, TellsWhoHoldsTheStages) {
  JobSpec job = ExampleJob({.micro_batches = 4, .blocks = 4});
  job.mutable_parallelism()->set_pipeline(2);
  job.mutable_parallelism()->set_pipeline_schedule("chimera");
  const Draft draft = ExampleDraft(job, "");
  ASSERT_EQ(draft.plan.stages_size(), 2);
  EXPECT_EQ(draft.plan.stages(0).unit(), 0);
  EXPECT_EQ(draft.plan.stages(0).pipeline_ranks_size(), 2);
  EXPECT_EQ(draft.plan.stages(1).unit(), draft.plan.stages(0).unit_count());
}

// By the field that is there, whatever axes its ranks make.
TEST(StartDraft, RefusesToCutSyntheticUnits) {
  JobSpec job;
  job.set_name("synthetic");
  job.mutable_model()->set_architecture("synthetic");
  job.mutable_model()->set_units(4);
  job.mutable_model()->add_forward_us(10);
  job.mutable_training()->set_steps(1);
  job.mutable_training()->set_global_batch_size(1);
  job.mutable_training()->set_micro_batch_size(1);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_context(4);
  parallelism.set_context_method("usp");
  parallelism.set_ulysses_size(2);
  EXPECT_THAT(
      std::string(CompilePlan(job, ExampleWorkers(4)).status().message()),
      StartsWith("parallelism.context: synthetic units"));
}

// Only where no update waits for all ranks, and the schedule gains by it.
TEST(StartDraft, LetsStepsOverlap) {
  const auto lag = [](const char* schedule, double clipping) {
    JobSpec job = ExampleJob({.micro_batches = 4});
    job.mutable_parallelism()->set_pipeline(2);
    job.mutable_parallelism()->set_pipeline_schedule(schedule);
    job.mutable_training()->set_gradient_clipping(clipping);
    return ExampleDraft(job, "").plan.derived().report_lag();
  };
  EXPECT_EQ(lag("1f1b", 0), 0);
  EXPECT_EQ(lag("zb_h2", 1), 0);
  EXPECT_EQ(lag("zb_h2", 0), 1);
  EXPECT_EQ(lag("pipedream", 0), 1);
  // Replicas of one stage drain after each step, so that they may clip.
  JobSpec job = ExampleJob({.data = 2});
  job.mutable_parallelism()->set_pipeline_schedule("pipedream");
  job.mutable_training()->set_gradient_clipping(1);
  EXPECT_EQ(ExampleDraft(job, "").plan.derived().report_lag(), 0);
}

TEST(StartDraft, EchoesWhatFollows) {
  JobSpec job = ExampleJob({.data = 2, .micro_batches = 3});
  const Derived none = ExampleDraft(job, "").plan.derived();
  EXPECT_EQ(none.data_parallel_size(), 2);
  EXPECT_EQ(none.micro_batches(), 3);
  EXPECT_EQ(none.tokens_per_step(), 2 * 3 * 2 * 8);
  // 64 x 16 + 8 x 16, two blocks of 3,280 and a norm of 32.
  EXPECT_EQ(none.parameters(), 7744);
  EXPECT_EQ(none.validation_micro_batches(), 0);
  EXPECT_GT(none.model_flops_per_token(), 6 * 7000);

  job.mutable_data()->set_validation_fraction(0.1);
  job.mutable_training()->set_validate_every(1);
  job.mutable_training()->set_validation_sequences(9);
  EXPECT_EQ(ExampleDraft(job, "").plan.derived().validation_micro_batches(), 3);
}

}  // namespace
}  // namespace troupe
