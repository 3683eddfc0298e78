// What ranks that share experts hand to their communicators in a training step,
// counted there, follows from where the router sends tokens, to the byte: what
// the plan predicts where each expert gets as many, and more exchanges where
// one rank gets all.
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/plan/layout.h"
#include "proto/plan/sums.h"
#include "scheduler/simulate/rates.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/experts_job.h"
#include "tests/equivalence/tensor_job.h"

namespace troupe {
namespace {

constexpr int kExperts = 8;
constexpr int64_t kHidden = 96;
constexpr int64_t kPositions = 24;
constexpr int kLayers = 2;

// Steps that do not validate, in which nothing is rounded up to lines.
JobSpec JobOf(int choices, const std::string& parallelism,
              const std::string& experts = "") {
  JobSpec job = TensorJob({.architecture = "mixtral",
                           .tied = false,
                           .positions = static_cast<int>(kPositions),
                           .micro_batch = 1});
  ModelSpec& model = *job.mutable_model();
  model.set_num_hidden_layers(kLayers);
  model.set_hidden_size(kHidden);
  model.set_num_experts(kExperts);
  model.set_num_experts_per_tok(choices);
  ExpertsSpec routing;
  CHECK(google::protobuf::TextFormat::ParseFromString(experts, &routing));
  model.mutable_experts()->MergeFrom(routing);
  TrainingSpec& training = *job.mutable_training();
  training.set_steps(4);
  training.set_validate_every(0);
  ParallelismSpec cut;
  CHECK(google::protobuf::TextFormat::ParseFromString(parallelism, &cut));
  job.mutable_parallelism()->MergeFrom(cut);
  return job;
}

// Of the sums of a step, which few numbers of ranks divide, a rank sends what
// others have of them in their blocks, and its own block to each; predicted is
// the mean of all ranks.
int64_t SumsSent(const Plan& plan, int rank, int ranks) {
  const int64_t elements = SumsBytes(plan) / int64_t{sizeof(double)};
  const int64_t own =
      EvenPiece(elements, {.index = rank, .count = ranks}).size();
  return (elements - own + (ranks - 1) * own) * int64_t{sizeof(double)};
}
int64_t SumsPredicted(const Plan& plan, int ranks) {
  return CollectiveBytesSent({.bytes = SumsBytes(plan), .ranks = ranks});
}

// More than predicted that each rank has sent in its second step.
std::vector<int64_t> Differences(const TrainingRun& run) {
  const int ranks = static_cast<int>(run.sent_bytes.size());
  std::vector<int64_t> differences;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<uint64_t>& sent = run.sent_bytes[rank];
    EXPECT_EQ(sent[2] - sent[1], sent[1] - sent[0]) << "rank " << rank;
    const int64_t predicted =
        run.plan.prediction().ranks(rank).bytes_sent_per_step() -
        SumsPredicted(run.plan, ranks) + SumsSent(run.plan, rank, ranks);
    differences.push_back(static_cast<int64_t>(sent[1] - sent[0]) - predicted);
  }
  return differences;
}

struct Cut {
  const char* parallelism;
  int ranks;
};

// Each token goes to all experts, so that these are evenly loaded.
TEST(ExpertBytes, AreThosePredictedWhereExpertsAreEvenlyLoaded) {
  const Cut cuts[] = {
      {"data: 2 expert: 2", 2},
      {"data: 4 expert: 2", 4},
      {"data: 4 expert: 4 expert_slack: 1", 4},
      {"data: 2 expert: 2 pipeline: 2 pipeline_schedule: 'zb_v'", 4},
      {"context: 2 expert: 2", 2},
      {"context: 2 context_method: 'ring' expert: 2 expert_slack: 1.5", 2},
      {"tensor: 2 sequence_parallel: true expert: 2", 2},
      {"data: 2 tensor: 2 sequence_parallel: true expert: 4", 4},
      {"data: 2 tensor: 2 sequence_parallel: true expert: 2", 4},
      {"data: 2 tensor: 2 expert: 2", 4},
  };
  for (const Cut& cut : cuts) {
    SCOPED_TRACE(cut.parallelism);
    const TrainingRun run =
        Train(JobOf(kExperts, cut.parallelism), {.ranks = cut.ranks});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const std::vector<int64_t> differences = Differences(run);
    for (const int64_t difference : differences) EXPECT_EQ(difference, 0);
  }
}

// Dropped choices keep their rows.
TEST(ExpertBytes, AreTheSameWithRoomForFewer) {
  for (const char* const routing :
       {"routing: 'capacity' capacity_factor: 0.5"}) {
    const TrainingRun run =
        Train(JobOf(kExperts, "data: 4 expert: 4", routing), {.ranks = 4});
    ASSERT_TRUE(run.status().ok()) << run.status();
    EXPECT_GT(run.steps[0].back().routers().dropped_share(), 0);
    for (const int64_t difference : Differences(run)) EXPECT_EQ(difference, 0);
  }
}

// Two choices of each token, both on the first rank of a group. Of R rows that
// a rank dispatches, (n - 1) / n are predicted to leave it, and as many to come
// and go back; all of those of the other ranks go to the first.
TEST(ExpertBytes, FollowWhereTheRouterSendsTokens) {
  for (const int slack : {4, 2, 1}) {
    SCOPED_TRACE(slack);
    constexpr int kRanks = 4;
    JobSpec job = JobOf(
        /*choices=*/2, absl::StrCat("data: 4 expert: 4 expert_slack: ", slack));
    job.mutable_training()->add_freeze("*.gate.*");
    const TrainingRun run =
        Train(job, {.ranks = kRanks, .change_plan = MakeScoresEqual});
    ASSERT_TRUE(run.status().ok()) << run.status();
    const int64_t row = kHidden * int64_t{sizeof(float)};
    const int64_t gate = sizeof(float);
    const int64_t rows = 2 * kPositions;  // of a rank
    // All to all exchanges of a layer: rows and gates to the experts, results
    // back; their gradients the other way around.
    const int64_t to_experts = rows * (row + gate + row);
    const int64_t back = rows * (row + row + gate);
    // Rows beyond those that the first round has room for are sent again for
    // backward.
    const int64_t in_first_round = slack * rows;
    const int64_t step = kLayers * run.plan.derived().micro_batches();
    const std::vector<int64_t> differences = Differences(run);
    const int64_t even = (to_experts + back) / kRanks * (kRanks - 1);
    for (int rank = 0; rank < kRanks; ++rank) {
      // Numbered by source: those of rank s are s R to (s + 1) R.
      const int64_t again = rank == 0 || (rank + 1) * rows <= in_first_round
                                ? 0
                                : rows * (row + gate);
      const int64_t sent = rank == 0 ? (kRanks - 1) * back : to_experts + again;
      EXPECT_EQ(differences[rank], step * (sent - even)) << "rank " << rank;
    }
  }
}

}  // namespace
}  // namespace troupe
