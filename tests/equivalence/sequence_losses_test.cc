// The loss of each sequence by itself (JobSpec.sequence_losses): that of the
// sequence alone, whatever the plan, each once and in the order of the file.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "scheduler/pipelines/pipelines.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/published_window.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

constexpr int kSequences = 21;  // steps of 8 do not divide it
constexpr int kStepSequences = 8;
constexpr int kSteps = 3;
constexpr int kNothingCounts = 3;  // this sequence

struct Row {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> counts;
};

// Unlike ones, as prompts with choices are: some tokens at the end count.
std::vector<Row> Rows(int length) {
  std::vector<Row> rows(kSequences);
  int32_t token = 7;
  for (int r = 0; r < kSequences; ++r) {
    for (int i = 0; i < length; ++i) {
      token = (token * 3 + 1 + (r * 5 + i * i) % 7) % 61;
      rows[r].tokens.push_back(token);
      const bool counts = r != kNothingCounts && i > 0 &&
                          i >= length - 1 - (r * 7) % (length - 1);
      rows[r].counts.push_back(counts ? 1 : 0);
    }
  }
  return rows;
}

int CountedOf(const Row& row) {
  int counted = 0;
  for (const uint8_t counts : row.counts) counted += counts;
  return counted;
}

std::string WriteRows(const std::string& name, const std::vector<Row>& rows) {
  const std::string path = absl::StrCat(testing::TempDir(), "/", name);
  auto writer =
      TokenFileWriter::Create({.path = path,
                               .vocab_size = 61,
                               .tokenizer = "none",
                               .says_what_counts = true,
                               .packed_length = rows[0].tokens.size()});
  CHECK_OK(writer.status());
  for (const Row& row : rows) {
    CHECK_OK((*writer)->Append(row.tokens, row.counts));
    CHECK_OK((*writer)->EndDocument());
  }
  CHECK_OK((*writer)->Append({0}, {0}));
  CHECK_OK((*writer)->EndDocument());
  CHECK_OK((*writer)->Finish().status());
  return path;
}

// With the weights that training would begin with.
JobSpec MeasuringJob(const std::string& architecture, int positions = 24) {
  const JobSpec training_job =
      TensorJob({.architecture = architecture, .positions = positions});
  JobSpec job;
  job.set_name("sequence losses");
  job.set_evaluate(true);
  job.set_sequence_losses(true);
  *job.mutable_model() = training_job.model();
  job.mutable_data()->set_validation(
      WriteRows(absl::StrCat("rows", positions, ".tokens"), Rows(positions)));
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(kSteps);
  training.set_global_batch_size(kStepSequences);
  training.set_micro_batch_size(2);
  training.set_sequence_length(positions);
  job.mutable_parallelism()->set_data(1);
  return job;
}

struct Measured {
  std::vector<double> losses;  // by sequence, then places without one
  std::vector<int> counted;
};

Measured MeasuredBy(const std::vector<StepRecord>& steps) {
  Measured measured;
  for (const StepRecord& step : steps) {
    const SequenceLosses& said = step.sequence_losses();
    measured.losses.insert(measured.losses.end(), said.losses().begin(),
                           said.losses().end());
    measured.counted.insert(measured.counted.end(),
                            said.counted_tokens().begin(),
                            said.counted_tokens().end());
  }
  return measured;
}

void ExpectLosses(const TrainingRun& run, const Measured& expected) {
  ASSERT_TRUE(run.status().ok()) << run.status();
  for (const std::vector<StepRecord>& steps : run.steps) {
    const Measured measured = MeasuredBy(steps);
    ASSERT_EQ(measured.losses.size(), kSteps * kStepSequences);
    EXPECT_EQ(measured.counted, expected.counted);
    double sum = 0;
    for (size_t i = 0; i < measured.losses.size(); ++i) {
      EXPECT_NEAR(measured.losses[i], expected.losses[i],
                  1e-5 * (1 + expected.losses[i]))
          << "sequence " << i;
      sum += measured.losses[i];
    }
    const StepRecord& last = steps.back();
    EXPECT_NEAR(sum / last.counted_tokens() / last.loss(), 1, 1e-12);
  }
}

// Of one rank, which the first test compares with each sequence alone.
const Measured& OneRank(const std::string& architecture) {
  static auto* const all = new std::map<std::string, Measured>;
  const auto [found, is_new] = all->try_emplace(architecture);
  if (is_new) {
    const TrainingRun run = Train(MeasuringJob(architecture), {});
    CHECK_OK(run.status());
    found->second = MeasuredBy(run.steps[0]);
  }
  return found->second;
}

// What an evaluation measures of a file that has this sequence only.
TEST(SequenceLosses, AreThoseOfEachSequenceAlone) {
  for (const char* const architecture : {"gpt2", "llama", "mixtral"}) {
    SCOPED_TRACE(architecture);
    const Measured& all = OneRank(architecture);
    ASSERT_EQ(all.losses.size(), kSteps * kStepSequences);
    const std::vector<Row> rows = Rows(24);
    for (int r = 0; r < kSequences; ++r) {
      EXPECT_EQ(all.counted[r], CountedOf(rows[r]));
      if (r == kNothingCounts) continue;
      JobSpec job = MeasuringJob(architecture);
      job.clear_sequence_losses();
      job.mutable_data()->set_validation(WriteRows("alone.tokens", {rows[r]}));
      TrainingSpec& training = *job.mutable_training();
      training.set_steps(1);
      training.set_global_batch_size(1);
      training.set_micro_batch_size(1);
      const TrainingRun run = Train(job, {});
      ASSERT_TRUE(run.status().ok()) << run.status();
      const StepRecord& alone = run.steps[0][0];
      EXPECT_FALSE(alone.has_sequence_losses());
      EXPECT_EQ(alone.counted_tokens(), all.counted[r]);
      EXPECT_NEAR(alone.loss() * alone.counted_tokens() / all.losses[r], 1,
                  1e-6)
          << "sequence " << r;
    }
    for (size_t r = 0; r < all.losses.size(); ++r) {
      if (all.counted[r] > 0) continue;
      EXPECT_EQ(all.losses[r], 0);
      EXPECT_TRUE(r == kNothingCounts || r >= kSequences) << r;
    }
  }
}

void ExpectSameLosses(const std::string& architecture, const JobCut& cut) {
  JobSpec uncut = MeasuringJob(architecture);
  // Blocks of ranks share the sequences of a micro-batch.
  if (cut.tensor_method == "3d") {
    uncut.mutable_training()->set_micro_batch_size(4);
  }
  const JobSpec job = CutJob(uncut, cut);
  SCOPED_TRACE(job.parallelism().ShortDebugString());
  ExpectLosses(Train(job, {.ranks = cut.ranks()}), OneRank(architecture));
}

TEST(SequenceLosses, AreTheSameOverAnyLayout) {
  for (const char* const architecture : {"gpt2", "llama"}) {
    for (const JobCut& cut :
         {JobCut{.data = 2}, JobCut{.data = 4}, JobCut{.data = 4, .zero = 3},
          JobCut{.tensor = 2}, JobCut{.tensor = 2, .sequence = true},
          JobCut{.tensor = 4, .tensor_method = "2d"},
          JobCut{.tensor = 8, .tensor_method = "3d"}, JobCut{.context = 2},
          JobCut{.context = 4, .context_method = "ring"},
          JobCut{.context = 2, .context_method = "ring_self_attention"},
          JobCut{.tensor = 2, .pipeline = 2, .data = 2, .zero = 3}}) {
      ExpectSameLosses(architecture, cut);
    }
  }
  ExpectSameLosses("mixtral", {.data = 2, .expert = 2});
  ExpectSameLosses("mixtral", {.tensor = 2, .pipeline = 2});
}

TEST(SequenceLosses, AreTheSameThroughAnyPipeline) {
  for (const Pipeline& pipeline : Pipelines()) {
    ExpectSameLosses(
        "gpt2",
        {.schedule = std::string(pipeline.name), .pipeline = 2, .data = 2});
  }
}

TEST(SequenceLosses, AreTheSameInChunks) {
  for (const int tokens : {1, 5, 24, 31}) {
    for (const JobCut& cut :
         {JobCut{}, JobCut{.tensor = 2}, JobCut{.context = 2},
          JobCut{.tensor = 2, .sequence = true}}) {
      JobSpec job = CutJob(MeasuringJob("gpt2"), cut);
      job.mutable_memory()->set_loss_chunk_tokens(tokens);
      SCOPED_TRACE(
          absl::StrCat(tokens, " ", job.parallelism().ShortDebugString()));
      ExpectLosses(Train(job, {.ranks = cut.ranks()}), OneRank("gpt2"));
    }
  }
}

// The place of a sequence in a step goes by all replicas before its own.
TEST(SequenceLosses, HaveTheirPlacesInUnevenShares) {
  JobSpec job = MeasuringJob("gpt2");
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->add_micro_batches(3);
  job.mutable_parallelism()->add_micro_batches(1);
  ExpectLosses(Train(job, {.ranks = 2}), OneRank("gpt2"));
}

TEST(SequenceLosses, AreReadLate) {
  JobSpec job = MeasuringJob("gpt2");
  job.mutable_parallelism()->set_data(2);
  ExpectLosses(Train(job, {.ranks = 2, .reads_late = true}), OneRank("gpt2"));
}

TEST(SequenceLosses, DoNotDependOnTheSizeOfSteps) {
  JobSpec job = MeasuringJob("gpt2");
  job.mutable_training()->set_steps(kSteps * kStepSequences / 2 - 1);
  job.mutable_training()->set_global_batch_size(2);
  const TrainingRun run = Train(job, {});
  ASSERT_TRUE(run.status().ok()) << run.status();
  const Measured measured = MeasuredBy(run.steps[0]);
  for (int r = 0; r < kSequences; ++r) {
    EXPECT_NEAR(measured.losses[r], OneRank("gpt2").losses[r],
                1e-6 * (1 + measured.losses[r]));
  }
}

// tests/oracle/hf: float64 of PyTorch.
TEST(SequenceLosses, AreThoseOfTransformers) {
  for (const char* const name : {"gpt2_tiny", "qwen3_tiny", "gpt_neox_tiny"}) {
    SCOPED_TRACE(name);
    PublishedWindow window = PublishedWindowOf(name);
    window.job.set_sequence_losses(true);
    const TrainingRun run = Train(window.job, {.ranks = 2});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const Measured measured = MeasuredBy(run.steps[1]);
    EXPECT_EQ(measured.counted, (std::vector<int>{window.targets, 0}));
    EXPECT_NEAR(measured.losses.at(0) / window.targets, window.loss, 1e-4);
    EXPECT_EQ(measured.losses.at(1), 0);
  }
}

// Weights that overflow: the message names the first sequence.
TEST(SequenceLosses, SayWhichIsNotFinite) {
  JobSpec job = MeasuringJob("gpt2");
  job.mutable_training()->set_precision("fp16");
  job.mutable_model()->set_initializer_range(100);
  const absl::Status refused = Train(job, {}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(refused.message().find("(the first is window "), std::string::npos)
      << refused;
}

}  // namespace
}  // namespace troupe
