#include "scheduler/planner/lay_groups.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// "data-0: 0 1; ..." of all groups.
std::string Groups(const char* schedule, int pipeline, int data, bool tied) {
  JobSpec job = ExampleJob({.data = data, .micro_batches = 4, .blocks = 6});
  job.mutable_parallelism()->set_pipeline(pipeline);
  job.mutable_parallelism()->set_pipeline_schedule(schedule);
  job.mutable_model()->set_tie_word_embeddings(tied);
  std::string text;
  const Draft draft = ExampleDraft(job, "");
  for (const Group& group : draft.plan.groups()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", group.name(), ": ",
                    absl::StrJoin(group.ranks(), " "));
  }
  return text;
}

TEST(LayGroups, WithoutAPipelineThereIsOne) {
  EXPECT_EQ(Groups("1f1b", 1, 3, true), "data-0: 0 1 2");
}

TEST(LayGroups, EachStageHasItsReplicas) {
  EXPECT_EQ(Groups("1f1b", 2, 2, false),
            "replicas-0: 0 1; replicas-1: 2 3; world: 0 1 2 3; "
            "pipeline-0-activations: 0 2; pipeline-0-gradients: 0 2; "
            "pipeline-1-activations: 1 3; pipeline-1-gradients: 1 3");
}

TEST(LayGroups, TiedTablesAreSummedOverBothEnds) {
  EXPECT_EQ(Groups("1f1b", 3, 1, true),
            "replicas-0: 0 2; replicas-1: 0; replicas-2: 1; replicas-3: 2; "
            "world: 0 1 2; pipeline-0-activations: 0 1 2; "
            "pipeline-0-gradients: 0 1 2");
}

TEST(LayGroups, ChimeraHoldsEachStageTwice) {
  EXPECT_EQ(Groups("chimera", 4, 1, false),
            "replicas-0: 0 3; replicas-1: 1 2; world: 0 1 2 3; "
            "pipeline-0-activations: 0 1 2 3; pipeline-0-gradients: 0 1 2 3");
}

}  // namespace
}  // namespace troupe
