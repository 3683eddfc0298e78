// The promise, for jobs that isolate documents: a step is that of its documents
// trained alone, and every plan trains what one rank trains.
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);
constexpr int kVocab = 61;

// All of a file in each step, so that the order of its windows does not matter:
// in sequences of `documents` documents of 6 tokens each.
JobSpec WholeFileJob(const std::string& architecture, int documents) {
  constexpr int kTokens = 6, kAll = 24;
  JobSpec job = WithFewSteps(TensorJob({.architecture = architecture}));
  // One token more, as a window reads what follows it.
  std::vector<int> lengths(kAll, kTokens);
  lengths.push_back(1);
  job.mutable_data()->set_tokens(WriteDocuments("alike.tokens", lengths));
  job.mutable_data()->set_validation_fraction(0);
  job.mutable_data()->set_isolate_documents(true);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(kTokens * documents);
  training.set_global_batch_size(kAll / documents);
  training.set_micro_batch_size(1);
  training.set_validate_every(0);
  return job;
}

class IsolatedDocuments : public testing::TestWithParam<std::string> {};

TEST_P(IsolatedDocuments, TrainAsIfEachWereAlone) {
  const TrainingRun alone = Train(WholeFileJob(GetParam(), 1), {});
  ASSERT_TRUE(alone.status().ok()) << alone.status();
  EXPECT_LT(alone.steps[0].back().loss(), alone.steps[0][0].loss());
  for (const int documents : {2, 4}) {
    // In fewer sequences, so that records count fewer samples.
    const TrainingRun together = Train(WholeFileJob(GetParam(), documents), {});
    ASSERT_TRUE(together.status().ok()) << together.status();
    const StepDifference apart = FurthestApart(together, alone);
    EXPECT_LT(apart.losses, kTolerance.losses) << documents;
    EXPECT_LT(apart.norms, kTolerance.norms) << documents;
  }
  // What they see of each other without isolation is another training.
  JobSpec mixed = WholeFileJob(GetParam(), 4);
  mixed.mutable_data()->set_isolate_documents(false);
  const TrainingRun other = Train(mixed, {});
  ASSERT_TRUE(other.status().ok()) << other.status();
  EXPECT_GT(FurthestApart(other, alone).losses, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Architectures, IsolatedDocuments,
                         testing::Values("gpt2", "llama", "gpt_neox"));

using Case = std::tuple<std::string, JobCut>;

class CutDocuments : public testing::TestWithParam<Case> {};

TEST_P(CutDocuments, TrainsTheSameModel) {
  const auto& [architecture, cut] = GetParam();
  const bool blocks = cut.tensor_method != "1d";
  const JobSpec job = IsolatingDocuments(
      WithFewSteps(TensorJob({.architecture = architecture,
                              .dropout = cut.context == 2 ? 0.1 : 0.0,
                              .micro_batch = blocks ? 4 : 2})));
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  EXPECT_LT(reference.steps[0].back().loss(), reference.steps[0][0].loss());
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  return absl::StrCat(std::get<0>(info.param), "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, CutDocuments,
    testing::Combine(
        testing::Values("gpt2", "llama"),
        testing::Values(
            JobCut{.data = 2}, JobCut{.tensor = 2, .sequence = true},
            JobCut{.tensor = 4, .tensor_method = "2d"},
            JobCut{.tensor = 8, .tensor_method = "3d"}, JobCut{.context = 2},
            JobCut{.context = 4, .context_method = "ulysses"},
            JobCut{.context = 4, .context_method = "ring"},
            JobCut{.context = 4, .context_method = "usp", .ulysses_size = 2},
            JobCut{.context = 4, .context_method = "ring_self_attention"},
            JobCut{.tensor = 2, .context = 2, .context_method = "ring"},
            JobCut{.pipeline = 2},
            JobCut{.schedule = "interleaved_1f1b", .pipeline = 2},
            JobCut{.pipeline = 2, .context = 2, .context_method = "ring"},
            JobCut{.data = 2, .zero = 3})),
    NameOfCase);

// Mixtures of experts: losses of routers are means over all tokens, whatever is
// predicted at them.
TEST(DocumentsOfExperts, TrainTheSameModel) {
  const JobSpec job =
      IsolatingDocuments(WithFewSteps(TensorJob({.architecture = "mixtral"})));
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  for (const JobCut& cut :
       {JobCut{.data = 2, .expert = 2}, JobCut{.pipeline = 2}}) {
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                       reference, kTolerance);
  }
}

// What is made again, or lies in another tier, is bit by bit the same.
TEST(RecomputedDocuments, AreBitwiseTheSame) {
  JobSpec job =
      IsolatingDocuments(WithFewSteps(TensorJob({.architecture = "llama"})));
  const TrainingRun kept = Train(job, {});
  ASSERT_TRUE(kept.status().ok()) << kept.status();
  for (const char* const mode : {"selective", "full"}) {
    job.mutable_memory()->mutable_recompute()->set_mode(mode);
    ExpectSameTraining(Train(job, {}), kept, 0.0);
  }
  job.mutable_memory()->set_parameters("host");
  job.mutable_memory()->set_optimizer("host");
  ExpectSameTraining(Train(job, {}), kept, 0.0);
}

TEST(ResumedDocuments, GoOnInOtherPlans) {
  const JobSpec job =
      IsolatingDocuments(WithFewSteps(TensorJob({.architecture = "llama"})));
  ExpectResumesThrough(
      {CutJob(job, {.context = 4, .context_method = "ring"}),
       CutJob(job, JobCut{.pipeline = 2}),
       CutJob(job, JobCut{.data = 2, .zero = 3}),
       CutJob(job, JobCut{.tensor = 2,
                          .context = 2,
                          .context_method = "ulysses"})},
      OneRank(job), kTolerance);
}

TEST(DocumentsThatAreNotThere, AreRefusedByName) {
  JobSpec job = WithFewSteps(SmallJob());
  const std::string path = absl::StrCat(testing::TempDir(), "/none.tokens");
  auto writer = TokenFileWriter::Create(
      {.path = path, .vocab_size = kVocab, .tokenizer = "bytes"});
  CHECK_OK(writer.status());
  CHECK_OK((*writer)->Append(std::vector<int32_t>(4000, 5)));
  CHECK_OK((*writer)->Finish().status());
  job.mutable_data()->set_tokens(path);
  job.mutable_data()->set_isolate_documents(true);
  const std::string error(Train(job, {}).status().message());
  EXPECT_NE(error.find(path), std::string::npos) << error;
  EXPECT_NE(error.find("troupe data prepare"), std::string::npos) << error;
}

}  // namespace
}  // namespace troupe
