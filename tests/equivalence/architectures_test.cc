// Each architecture, cut over replicas, and over the stages of a pipeline whose
// backward passes for inputs and for weights run at different times, trains
// the same model as on a single rank.
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/pipeline_job.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

class EveryArchitecture : public testing::TestWithParam<std::string> {};

TEST_P(EveryArchitecture, TrainsTheSameModelOverAnyRanks) {
  JobSpec job = SmallJobOf(GetParam());
  job.mutable_training()->set_micro_batch_size(1);
  job.mutable_training()->set_dropout(0.1);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.3);
  for (const PipelineCut& cut :
       {PipelineCut{.schedule = "1f1b", .pipeline = 1, .data = 2},
        PipelineCut{.schedule = "zb_h1", .pipeline = 2}}) {
    SCOPED_TRACE(cut.schedule);
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                       reference);
  }
}

INSTANTIATE_TEST_SUITE_P(Small, EveryArchitecture,
                         testing::Values("gpt_neox", "mistral", "qwen2",
                                         "qwen3", "mixtral", "qwen2_moe",
                                         "qwen3_moe", "olmoe", "deepseek_v3"));

}  // namespace
}  // namespace troupe
