// The promise, for data that says which tokens count: the loss of a step is the
// mean over those of its whole batch, and every plan trains what one rank
// trains, however unevenly they lie in micro-batches and on ranks.
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "storage/dataset/sample_reader.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/same_training.h"
#include "tests/equivalence/small_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

const Tolerance kTolerance(1e-5, 1e-4);
constexpr int kVocab = 61;

// Of a record: how many tokens, and how many at its end count.
struct Record {
  int tokens = 0;
  int counted = 0;
};

std::string WriteRecords(const std::string& name,
                         const std::vector<Record>& records) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  auto writer = TokenFileWriter::Create({.path = path,
                                         .vocab_size = kVocab,
                                         .tokenizer = "bytes",
                                         .says_what_counts = true});
  CHECK_OK(writer.status());
  int32_t token = 7;
  for (const Record& record : records) {
    std::vector<int32_t> tokens;
    std::vector<uint8_t> counts;
    for (int i = 0; i < record.tokens; ++i) {
      token = (token * 3 + i % 5 + 1) % kVocab;
      tokens.push_back(token);
      counts.push_back(i >= record.tokens - record.counted ? 1 : 0);
    }
    CHECK_OK((*writer)->Append(tokens, counts));
    CHECK_OK((*writer)->EndDocument());
  }
  CHECK_OK((*writer)->Finish().status());
  return path;
}

// Windows of 24 tokens have from none to all of them: long prompts with one
// token behind, long answers, and short records.
JobSpec CountingCompletions(JobSpec job, bool isolates) {
  std::vector<Record> records;
  for (int i = 0; i < 120; ++i) {
    records.push_back({.tokens = 70 + i % 7, .counted = 1});
    records.push_back({.tokens = 40 + i % 5, .counted = 38});
    records.push_back({.tokens = 5 + i % 3, .counted = 2});
  }
  job.mutable_data()->set_tokens(WriteRecords("completions.tokens", records));
  job.mutable_data()->set_isolate_documents(isolates);
  return job;
}

// How many targets of each sample count.
std::vector<int64_t> CountsOfSamples(const JobSpec& job, int64_t samples) {
  const auto reader = SampleReader::Create(
      {.sources = {{job.data().tokens()}},
       .sequence_length =
           static_cast<uint64_t>(job.training().sequence_length()),
       .validation_fraction = job.data().validation_fraction(),
       .seed = job.training().seed(),
       .isolate_documents = job.data().isolate_documents()});
  CHECK_OK(reader.status());
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < samples; ++i) {
    counts.push_back(reader->CountTargets(i, 1).value());
  }
  return counts;
}

using Case = std::tuple<std::string, JobCut>;

class CutCompletions : public testing::TestWithParam<Case> {};

TEST_P(CutCompletions, TrainsTheSameModel) {
  const auto& [architecture, cut] = GetParam();
  const bool blocks = cut.tensor_method != "1d";
  const JobSpec job = CountingCompletions(
      WithFewSteps(TensorJob(
          {.architecture = architecture, .micro_batch = blocks ? 4 : 1})),
      /*isolates=*/cut.context > 1);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}), reference,
                     kTolerance);
}

std::string NameOfCase(const testing::TestParamInfo<Case>& info) {
  return absl::StrCat(std::get<0>(info.param), "_", info.index);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, CutCompletions,
    testing::Combine(
        testing::Values("gpt2", "llama"),
        testing::Values(
            JobCut{.data = 2}, JobCut{.data = 4}, JobCut{.data = 2, .zero = 2},
            JobCut{.data = 2, .zero = 3}, JobCut{.tensor = 2, .sequence = true},
            JobCut{.tensor = 4, .tensor_method = "2d"},
            JobCut{.context = 2, .context_method = "ring"},
            JobCut{.context = 4, .context_method = "ulysses"},
            JobCut{.pipeline = 2},
            JobCut{.schedule = "interleaved_1f1b", .pipeline = 2},
            JobCut{.schedule = "gpipe", .pipeline = 2, .data = 2},
            JobCut{.pipeline = 2, .context = 2, .context_method = "ring"})),
    NameOfCase);

TEST(CompletionsOfExperts, TrainTheSameModel) {
  const JobSpec job = CountingCompletions(
      WithFewSteps(TensorJob({.architecture = "mixtral"})), false);
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  for (const JobCut& cut :
       {JobCut{.data = 2, .expert = 2}, JobCut{.pipeline = 2}}) {
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                       reference, kTolerance);
  }
}

// The best known silent fault of trainers is a mean of the micro-batches'
// means. Here that is far from the mean over the tokens, which the loss is.
TEST(LossOfCompletions, IsTheMeanOverTheTokensOfTheWholeBatch) {
  constexpr int kSamples = 8;
  std::vector<Record> records;
  for (int i = 0; i < 40; ++i) {
    records.push_back({.tokens = 24, .counted = i % 2 == 0 ? 1 : 23});
  }
  records.push_back({.tokens = 1});
  JobSpec job = WithFewSteps(TensorJob({.architecture = "gpt2"}));
  job.mutable_data()->set_tokens(WriteRecords("uneven.tokens", records));
  job.mutable_data()->set_validation_fraction(0);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(24);
  training.set_validate_every(0);
  training.set_micro_batch_size(1);
  // Each sample in a step of its own, with weights that all but stay.
  training.set_global_batch_size(1);
  training.set_steps(kSamples);
  job.mutable_optimizer()->set_lr(1e-12);
  const TrainingRun apart = Train(job, {});
  ASSERT_TRUE(apart.status().ok()) << apart.status();
  const std::vector<int64_t> counts = CountsOfSamples(job, kSamples);
  double sum = 0, all = 0, of_means = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double loss = apart.steps[0][i].loss();
    sum += loss * static_cast<double>(counts[i]);
    all += static_cast<double>(counts[i]);
    of_means += loss / kSamples;
  }
  ASSERT_GT(std::abs(of_means / (sum / all) - 1), 1e-3);
  training.set_global_batch_size(kSamples);
  training.set_steps(1);
  double norm = 0;
  for (const int micro : {1, 2, 4, 8}) {
    training.set_micro_batch_size(micro);
    const TrainingRun run = Train(job, {});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const StepRecord& step = run.steps[0][0];
    EXPECT_NEAR(step.loss() / (sum / all), 1, 1e-6) << micro;
    if (norm == 0) norm = step.grad_norm();
    EXPECT_NEAR(step.grad_norm() / norm, 1, 1e-5) << micro;
  }
}

// Records of 6 tokens in sequences of one, two and four of them, all in each
// step: micro-batches differ in what counts, and the step is the same.
JobSpec WholeFileJob(const std::string& architecture, int records) {
  constexpr int kTokens = 6, kAll = 24;
  JobSpec job = WithFewSteps(TensorJob({.architecture = architecture}));
  std::vector<Record> all;
  for (int i = 0; i < kAll; ++i) {
    all.push_back({.tokens = kTokens, .counted = i % 3 == 0 ? 5 : 1});
  }
  all.push_back({.tokens = 1});  // a window reads what follows it
  job.mutable_data()->set_tokens(WriteRecords("alike_records.tokens", all));
  job.mutable_data()->set_validation_fraction(0);
  job.mutable_data()->set_isolate_documents(true);
  TrainingSpec& training = *job.mutable_training();
  training.set_sequence_length(kTokens * records);
  training.set_global_batch_size(kAll / records);
  training.set_micro_batch_size(1);
  training.set_validate_every(0);
  return job;
}

class CompletionsTogether : public testing::TestWithParam<std::string> {};

TEST_P(CompletionsTogether, TrainAsIfEachWereAlone) {
  const TrainingRun alone = Train(WholeFileJob(GetParam(), 1), {});
  ASSERT_TRUE(alone.status().ok()) << alone.status();
  for (const int records : {2, 4}) {
    const TrainingRun together = Train(WholeFileJob(GetParam(), records), {});
    ASSERT_TRUE(together.status().ok()) << together.status();
    const StepDifference apart = FurthestApart(together, alone);
    EXPECT_LT(apart.losses, kTolerance.losses) << records;
    EXPECT_LT(apart.norms, kTolerance.norms) << records;
  }
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompletionsTogether,
                         testing::Values("gpt2", "llama"));

// Such a step has a loss of 0 and no gradient, and training goes on.
TEST(StepWithoutCompletions, TrainsOnAsOneRankDoes) {
  JobSpec job = WithFewSteps(TensorJob({.architecture = "gpt2"}));
  std::vector<Record> records;
  for (int i = 0; i < 41; ++i) {
    records.push_back({.tokens = 100, .counted = i % 10 == 0 ? 100 : 0});
  }
  job.mutable_data()->set_tokens(WriteRecords("prompts.tokens", records));
  job.mutable_data()->set_validation_fraction(0);
  job.mutable_training()->set_validate_every(0);
  job.mutable_training()->set_gradient_clipping(1.0);
  const int64_t batch = job.training().global_batch_size();
  const std::vector<int64_t> counts =
      CountsOfSamples(job, job.training().steps() * batch);
  const TrainingRun reference = Train(job, {});
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  int64_t without = 0;
  for (int64_t step = 0; step < job.training().steps(); ++step) {
    const auto first = counts.begin() + step * batch;
    const bool none = std::all_of(first, first + batch,
                                  [](int64_t count) { return count == 0; });
    without += none;
    const StepRecord& record = reference.steps[0][step];
    EXPECT_EQ(record.loss() == 0, none) << step;
    EXPECT_EQ(record.grad_norm() == 0, none) << step;
  }
  EXPECT_GT(without, 0) << "no step without any: another seed is needed";
  for (const JobCut& cut : {JobCut{.data = 2}, JobCut{.pipeline = 2}}) {
    ExpectSameTraining(Train(CutJob(job, cut), {.ranks = cut.ranks()}),
                       reference, kTolerance);
  }
}

}  // namespace
}  // namespace troupe
