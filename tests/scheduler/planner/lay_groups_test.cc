#include "scheduler/planner/lay_groups.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/groups.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// "world: 0 1; ..." of all groups, as the first rank that is in one sees them.
std::string Groups(const char* schedule, int pipeline, int data, bool tied) {
  JobSpec job = ExampleJob({.data = data, .micro_batches = 4, .blocks = 6});
  job.mutable_parallelism()->set_pipeline(pipeline);
  job.mutable_parallelism()->set_pipeline_schedule(schedule);
  job.mutable_model()->set_tie_word_embeddings(tied);
  std::string text;
  const Draft draft = ExampleDraft(job, "");
  for (const Group& group : draft.plan.groups()) {
    const Mesh& mesh = draft.plan.mesh();
    int first = 0;
    while (GroupNumber(mesh, group, first) < 0) ++first;
    absl::StrAppend(&text, text.empty() ? "" : "; ", group.name(), ": ",
                    absl::StrJoin(MembersOf(mesh, group, first), " "));
  }
  return text;
}

TEST(LayGroups, WithoutAPipelineThereIsOne) {
  EXPECT_EQ(Groups("1f1b", 1, 3, true), "data: 0 1 2");
}

TEST(LayGroups, EachStageHasItsReplicas) {
  EXPECT_EQ(Groups("1f1b", 2, 2, false),
            "data: 0 1; world: 0 1 2 3; activations: 0 2; gradients: 0 2");
}

TEST(LayGroups, TiedTablesAreSummedOverBothEnds) {
  EXPECT_EQ(Groups("1f1b", 3, 1, true),
            "pipeline 0,2: 0 2; world: 0 1 2; activations: 0 1 2; "
            "gradients: 0 1 2");
}

TEST(LayGroups, ChimeraHoldsEachStageTwice) {
  EXPECT_EQ(Groups("chimera", 4, 1, false),
            "pipeline 0,3: 0 3; pipeline 1,2: 1 2; world: 0 1 2 3; "
            "activations: 0 1 2 3; gradients: 0 1 2 3");
}

// Keys and values of one head on two ranks of four are summed by both; norms,
// with a slice of the sequence each, by all four.
TEST(LayGroups, PartsAreSummedByWhoHasSummands) {
  JobSpec job = ExampleJob({.data = 2});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("llama");
  model.set_num_attention_heads(4);
  model.set_num_key_value_heads(2);
  job.mutable_parallelism()->set_tensor(4);
  job.mutable_parallelism()->set_sequence_parallel(true);
  const Plan plan = ExampleDraft(job, "").plan;
  std::set<std::string> summed;
  std::set<std::string> shared;
  for (const Placement& placement : plan.roles(0).placements()) {
    for (const Placement::Part& part : placement.parts()) {
      summed.insert(SpansText(plan.groups(part.summed())));
      shared.insert(SpansText(plan.groups(part.shared())));
    }
  }
  const std::set<std::string> wanted = {"data", "data x tensor",
                                        "data x tensor by 2"};
  EXPECT_EQ(summed, wanted);
  EXPECT_EQ(shared, wanted);
}

// The groups over which a block's parts are dealt, in the order of the parts.
std::string DealtOver(int data, int expert, int zero) {
  JobSpec job = ExampleJob({.data = data});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(12);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(expert);
  job.mutable_parallelism()->set_zero(zero);
  const Plan plan = ExampleDraft(job, "").plan;
  std::string text;
  for (const Placement::Part& part : plan.roles(0).placements(1).parts()) {
    absl::StrAppend(
        &text, text.empty() ? "" : "; ",
        part.has_dealt() ? SpansText(plan.groups(part.dealt())) : "none");
  }
  return text;
}

// Experts are dealt over those that have the same of them, all else of a block
// over all replicas.
TEST(LayGroups, EachPartIsDealtOverWhoHasTheSame) {
  for (const int zero : {1, 2, 3}) {
    EXPECT_EQ(DealtOver(4, 4, zero), "expert; none");
    EXPECT_EQ(DealtOver(4, 2, zero), "data x expert; data");
    EXPECT_EQ(DealtOver(4, 1, zero), "data");
  }
  EXPECT_EQ(DealtOver(4, 2, 0), "none; none");
}

}  // namespace
}  // namespace troupe
