#include "scheduler/planner/unit_kinds.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/planner/resolve.h"
#include "scheduler/planner/start_draft.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// Layers without experts in between are of a kind of their own.
TEST(KindOfUnits, AreThoseThatDoTheSame) {
  JobSpec job = ExampleJob({.blocks = 4});
  const ModelKinds dense = KindsOfModel(ResolveJob(job).value()).value();
  EXPECT_THAT(dense.of_unit, ElementsAre(0, 1, 1, 1, 1, 2));
  EXPECT_EQ(dense.units.units.size(), 3u);
  job.mutable_model()->set_architecture("qwen2_moe");
  job.mutable_model()->set_num_experts(4);
  job.mutable_model()->set_num_experts_per_tok(2);
  job.mutable_model()->set_moe_intermediate_size(16);
  job.mutable_model()->set_shared_expert_intermediate_size(16);
  job.mutable_model()->set_decoder_sparse_step(2);
  const ModelKinds mixed = KindsOfModel(ResolveJob(job).value()).value();
  EXPECT_THAT(mixed.of_unit, ElementsAre(0, 1, 2, 1, 2, 3));
}

// Each costs what the units cost that it stands for.
TEST(KindOfUnits, HaveTheWorkOfTheirUnits) {
  const JobSpec job =
      ResolveJob(ExampleJob({.micro_batches = 1, .blocks = 3})).value();
  const Draft whole = StartDraft(job).value();
  const ModelKinds kinds = KindsOfModel(job).value();
  const Draft draft = StartDraftOfKinds(job, kinds).value();
  for (int u = 0; u < whole.plan.units_size(); ++u) {
    const Unit& one = draft.plan.units(kinds.of_unit[u]);
    const Unit& unit = whole.plan.units(u);
    EXPECT_EQ(one.forward().SerializeAsString(),
              unit.forward().SerializeAsString());
    EXPECT_EQ(one.stash_bytes(), unit.stash_bytes());
    EXPECT_EQ(one.flat_elements(), unit.flat_elements());
  }
}

}  // namespace
}  // namespace troupe
