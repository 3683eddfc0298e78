#include "tests/equivalence/blocks_of_ranks.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/in_pieces.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);

}  // namespace

JobSpec BlocksJob(const std::string& architecture, bool tied, double dropout) {
  return WithFewSteps(TensorJob({.architecture = architecture,
                                 .tied = tied,
                                 .dropout = dropout,
                                 .micro_batch = 4}));
}

void ExpectTrainsTheSameModel(const JobSpec& job, const JobCut& cut) {
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(),
            reference.steps[0][0].loss() - 0.05);
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

void ExpectSameRecomputed(const JobCut& cut) {
  JobSpec job = CutJob(BlocksJob("gpt2", /*tied=*/true, 0.1), cut);
  const TrainingRun reference = Train(job, {.ranks = cut.ranks()});
  for (const char* const mode : {"selective", "full"}) {
    job.mutable_memory()->mutable_recompute()->set_mode(mode);
    ExpectSameTraining(Train(job, {.ranks = cut.ranks()}), reference, 0.0);
  }
}

void ExpectResumedByOthers(const std::vector<JobCut>& cuts,
                           const std::string& folder) {
  JobSpec job = BlocksJob("llama", /*tied=*/false, 0.1);
  job.mutable_training()->set_validate_every(0);
  const TrainingRun& whole = OneRank(job);
  ASSERT_TRUE(whole.status().ok()) << whole.status();
  const std::string directory = absl::StrCat(testing::TempDir(), "/", folder);
  std::filesystem::remove_all(directory);
  job.mutable_checkpoint()->set_directory(directory);
  ASSERT_NO_FATAL_FAILURE(ExpectSameInPieces(job, cuts, whole, kTolerance));
}

}  // namespace troupe
