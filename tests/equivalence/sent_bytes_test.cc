// What the ranks of a cut plan hand to their communicators in a training step,
// counted there, is what the plan predicts, to the byte.
#include <cstdint>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "scheduler/simulate/rates.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

// Of the sum of five doubles over all ranks, which is all in a step that few
// numbers of ranks divide. A rank sends what others have of it in their blocks,
// and its own block to each of them; the plan predicts the same for all ranks,
// which is their mean.
constexpr int kScalars = 5;
int64_t ScalarBytesSent(int rank, int ranks) {
  const int64_t own =
      EvenPiece(kScalars, {.index = rank, .count = ranks}).size();
  return (kScalars - own + (ranks - 1) * own) * sizeof(double);
}
int64_t ScalarBytesPredicted(int ranks) {
  return CollectiveBytesSent(
      {.bytes = kScalars * sizeof(double), .ranks = ranks});
}

// Architecture, precision, cut.
using Case = std::tuple<std::string, std::string, JobCut>;

class SentBytes : public testing::TestWithParam<Case> {};

TEST_P(SentBytes, AreThoseThatThePlanPredicts) {
  const auto& [architecture, precision, cut] = GetParam();
  JobSpec job =
      TensorJob({.architecture = architecture,
                 .tied = architecture == "gpt2",
                 .dropout = 0.1,
                 .key_value_heads = cut.tensor * cut.context == 3 ? 3 : 2});
  job.mutable_model()->set_num_hidden_layers(2);  // four units
  // Gradients are padded to 32 elements, which three ranks divide so.
  job.mutable_model()->set_hidden_size(3 * 32);
  TrainingSpec& training = *job.mutable_training();
  training.set_precision(precision);
  const bool cuts_samples = cut.tensor_method != "1d";
  training.set_micro_batch_size(cuts_samples ? 4 : 1);
  training.set_steps(4);  // the last of which validates
  training.set_validate_every(0);
  const int ranks = cut.ranks();
  const TrainingRun run = Train(CutJob(job, cut), {.ranks = ranks});
  ASSERT_TRUE(run.status().ok()) << run.status();
  // Of a part of a unit, and where it is dealt over four, slices differ from
  // rank to rank, and so does what a root sends.
  const bool by_rank =
      !cuts_samples && (cut.zero == 0 || (cut.tensor == 1 && cut.context == 1));
  std::vector<int64_t> difference(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t predicted =
        run.plan.prediction().ranks(rank).bytes_sent_per_step();
    ASSERT_GT(predicted, ScalarBytesPredicted(ranks));
    const int64_t expected =
        predicted - ScalarBytesPredicted(ranks) + ScalarBytesSent(rank, ranks);
    const std::vector<uint64_t>& sent = run.sent_bytes[rank];
    EXPECT_EQ(sent[2] - sent[1], sent[1] - sent[0]) << "rank " << rank;
    difference[rank] = static_cast<int64_t>(sent[1] - sent[0]) - expected;
    if (by_rank) {
      EXPECT_EQ(difference[rank], 0) << "rank " << rank;
    }
  }
  EXPECT_EQ(std::accumulate(difference.begin(), difference.end(), int64_t{0}),
            0);
}

std::vector<JobCut> Cuts() {
  std::vector<JobCut> cuts;
  for (const bool sequence : {false, true}) {
    for (const int tensor : {2, 3, 4}) {
      cuts.push_back({.tensor = tensor, .sequence = sequence});
    }
    cuts.push_back({.tensor = 2, .sequence = sequence, .data = 2});
    cuts.push_back({.tensor = 3, .sequence = sequence, .data = 2});
    cuts.push_back({.tensor = 2, .sequence = sequence, .pipeline = 2});
    cuts.push_back({.tensor = 2,
                    .sequence = sequence,
                    .schedule = "zb_v",
                    .pipeline = 2,
                    .data = 2});
    cuts.push_back({.tensor = 4,
                    .sequence = sequence,
                    .schedule = "chimera",
                    .pipeline = 2});
  }
  cuts.push_back({.tensor = 8, .tensor_method = "3d"});
  cuts.push_back({.tensor = 8, .tensor_method = "3d", .data = 2, .zero = 3});
  cuts.push_back({.tensor = 8, .tensor_method = "3d", .pipeline = 2});
  cuts.push_back({.tensor = 4, .tensor_method = "2d"});
  cuts.push_back({.tensor = 4, .tensor_method = "2d", .pipeline = 2});
  cuts.push_back({.tensor = 8, .tensor_method = "2.5d", .data = 2});
  cuts.push_back({.context = 2});
  cuts.push_back({.context = 3});
  cuts.push_back({.context = 4});
  cuts.push_back({.data = 2, .zero = 3, .context = 2});
  cuts.push_back({.data = 2, .zero = 2, .zero_size = 2, .context = 2});
  cuts.push_back({.tensor = 2, .sequence = true, .context = 2});
  cuts.push_back({.pipeline = 2, .context = 2});
  cuts.push_back({.context = 2, .context_method = "ring"});
  cuts.push_back({.context = 4, .context_method = "ring"});
  cuts.push_back({.tensor = 2, .context = 2, .context_method = "ring"});
  cuts.push_back({.context = 4, .context_method = "usp", .ulysses_size = 2});
  cuts.push_back({.context = 3, .context_method = "ring_self_attention"});
  for (const int zero : {1, 2, 3}) {
    cuts.push_back({.data = 2, .zero = zero});
    cuts.push_back({.data = 4, .zero = zero, .zero_size = 2});
    cuts.push_back({.tensor = 2, .sequence = true, .data = 2, .zero = zero});
    cuts.push_back({.schedule = "zb_h1",
                    .pipeline = 2,
                    .data = 2,
                    .zero = zero,
                    .reshard = false});
  }
  return cuts;
}

std::string CaseName(const testing::TestParamInfo<Case>& info) {
  const auto& [architecture, precision, cut] = info.param;
  return absl::StrCat(
      architecture, "_", precision, "_tensor", cut.tensor,
      cut.sequence ? "_sequence" : "",
      cut.tensor_method == "1d"     ? ""
      : cut.tensor_method == "2.5d" ? "_layers"
                                    : absl::StrCat("_", cut.tensor_method),
      "_", cut.schedule, cut.pipeline, "_data", cut.data,
      cut.context > 1 ? absl::StrCat("_", cut.context_method, cut.context) : "",
      cut.zero > 0 ? absl::StrCat("_zero", cut.zero, "_", cut.zero_size) : "");
}

// Precision and architecture have nothing to do with each other here.
INSTANTIATE_TEST_SUITE_P(Gpt2, SentBytes,
                         testing::Combine(testing::Values("gpt2"),
                                          testing::Values("f32"),
                                          testing::ValuesIn(Cuts())),
                         CaseName);
INSTANTIATE_TEST_SUITE_P(Llama, SentBytes,
                         testing::Combine(testing::Values("llama"),
                                          testing::Values("bf16"),
                                          testing::ValuesIn(Cuts())),
                         CaseName);

}  // namespace
}  // namespace troupe
