#include "scheduler/planner/start_draft.h"

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(StartDraft, LaysOutTheMesh) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 3}), "");
  ASSERT_EQ(draft.plan.mesh().axes_size(), 1);
  EXPECT_EQ(draft.plan.mesh().axes(0).name(), "data");
  EXPECT_EQ(draft.plan.mesh().axes(0).size(), 3);
  ASSERT_EQ(draft.plan.groups_size(), 1);
  EXPECT_EQ(draft.plan.groups(0).ranks_size(), 3);
  EXPECT_EQ(draft.plan.ranks_size(), 3);
  EXPECT_EQ(draft.plan.placements_size(), 3 * 4);
  EXPECT_EQ(draft.stage_units, (std::vector<std::vector<int>>{{0, 1, 2, 3}}));
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
