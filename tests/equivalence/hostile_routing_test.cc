// Routers that do harm: to one expert, to one rank, to none of a rank's
// experts, to others in every step, and all at once. Wherever tokens go, ranks
// that share experts train the single rank's model, in the memory that the plan
// has for them.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "proto/base/philox.h"
#include "proto/plan/sums.h"
#include "storage/dataset/data_order.h"
#include "storage/dataset/token_file_writer.h"
#include "tests/equivalence/cluster_of_threads.h"
#include "tests/equivalence/experts_job.h"
#include "tests/equivalence/same_training.h"

namespace troupe {
namespace {

JobSpec Cut(JobSpec job, const std::string& parallelism) {
  Merge(parallelism, *job.mutable_parallelism());
  return job;
}

// Of each layer, how often its experts were chosen in a step.
std::vector<std::vector<double>> ChoicesIn(const TrainingRun& run, int step) {
  std::vector<std::vector<double>> layers;
  const std::vector<double>& sums = run.sums[0].at(step);
  for (const Sum& sum : run.plan.sums()) {
    if (sum.name() != kExpertTokensSum) continue;
    const auto first =
        sums.begin() + PlaceOfSum(run.plan, sum.name(), sum.unit()).first;
    layers.emplace_back(first, first + sum.elements());
  }
  CHECK(!layers.empty());
  return layers;
}

double TokensOf(const JobSpec& job) {
  return static_cast<double>(job.training().global_batch_size() *
                             job.training().sequence_length());
}

// One choice of eight, for few tokens: in most micro-batches ranks receive
// nothing, or all that there is.
TEST(HostileRouting, LeavesRanksWithoutTokens) {
  const JobSpec job = ExpertsJob(/*choices=*/1, /*positions=*/2);
  const int64_t steps = job.training().steps();
  for (const int ranks : {2, 4, 8}) {
    SCOPED_TRACE(ranks);
    for (const char* const slack : {"", " expert_slack: 1"}) {
      const std::string cut =
          absl::StrCat("data: ", ranks, " expert: ", ranks, slack);
      ExpectSame({{Cut(job, cut), steps}}, job);
    }
  }
}

// To the first experts, which are on the first rank: in all steps if the router
// is frozen, until it has learnt something else if it is not. With one choice
// all tokens go to one expert; seven have none, and three ranks.
TEST(HostileRouting, SendsAllTokensToOneRankOrExpert) {
  for (const int choices : {2, 1}) {
    for (const char* const training : {"freeze: '*.gate.*'", ""}) {
      JobSpec job = ExpertsJob(choices);
      Merge(training, *job.mutable_training());
      const TrainingRun reference =
          Train(job, {.change_plan = MakeScoresEqual});
      ASSERT_TRUE(reference.status().ok()) << reference.status();
      for (const std::vector<double>& layer : ChoicesIn(reference, 0)) {
        for (size_t expert = 0; expert < layer.size(); ++expert) {
          EXPECT_EQ(layer[expert],
                    static_cast<int>(expert) < choices ? TokensOf(job) : 0);
        }
      }
      for (const char* const slack : {"", " expert_slack: 1"}) {
        SCOPED_TRACE(absl::StrCat(training, slack, ", choices ", choices));
        const JobSpec cut = Cut(job, absl::StrCat("data: 4 expert: 4", slack));
        ExpectSameTraining(
            Train(cut, {.ranks = 4, .change_plan = MakeScoresEqual}), reference,
            Tolerance(1e-5, 4e-4));
      }
    }
  }
}

constexpr int kSteps = 8;
bool IsBurst(int step) { return step % 3 != 2; }

// All tokens of a burst are one, another in each step: their states are equal
// in every layer, and so are their choices. Other steps are of mixed tokens.
JobSpec BurstsJob() {
  JobSpec job = ExpertsJob(/*choices=*/2);
  job.mutable_training()->set_steps(kSteps);
  job.mutable_training()->set_validate_every(0);
  job.mutable_data()->set_validation_fraction(0);
  const int64_t length = job.training().sequence_length();
  const int64_t samples = kSteps * job.training().global_batch_size();
  std::vector<int32_t> tokens(samples * length + 1);
  const int vocabulary = job.model().vocab_size();
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(
        PhiloxUint32({.seed = 9, .purpose = RandomPurpose::kSampling}, i) %
        vocabulary);
  }
  const DataOrder order =
      DataOrder::Create({.token_count = tokens.size(),
                         .sequence_length = static_cast<uint64_t>(length),
                         .seed = job.training().seed()})
          .value();
  for (int64_t sample = 0; sample < samples; ++sample) {
    const int step =
        static_cast<int>(sample / job.training().global_batch_size());
    if (!IsBurst(step)) continue;
    const auto first = tokens.begin() + order.TrainingToken(sample);
    std::fill(first, first + length, (11 * step + 5) % vocabulary);
  }
  const std::string path = absl::StrCat(testing::TempDir(), "/bursts.tokens");
  auto writer =
      TokenFileWriter::Create({.path = path,
                               .vocab_size = static_cast<uint64_t>(vocabulary),
                               .tokenizer = "bytes"});
  CHECK_OK(writer.status());
  CHECK_OK((*writer)->Append(tokens));
  CHECK_OK((*writer)->Finish().status());
  job.mutable_data()->set_tokens(path);
  return job;
}

TEST(HostileRouting, MovesAndComesInBursts) {
  const JobSpec job = BurstsJob();
  const TrainingRun& reference = OneRank(job);
  ASSERT_TRUE(reference.status().ok()) << reference.status();
  const double tokens = TokensOf(job);
  std::set<std::vector<double>> hot;
  for (int step = 0; step < kSteps; ++step) {
    for (const std::vector<double>& layer : ChoicesIn(reference, step)) {
      const auto all = std::count(layer.begin(), layer.end(), tokens);
      EXPECT_EQ(all, IsBurst(step) ? 2 : 0) << "step " << step + 1;
    }
    if (IsBurst(step)) hot.insert(ChoicesIn(reference, step)[0]);
  }
  EXPECT_GE(hot.size(), 3u) << "tokens go to the same experts in all steps";
  const std::string sequence = " tensor: 2 sequence_parallel: true";
  for (const std::string& cut :
       {std::string("data: 4 expert: 4"),
        std::string("data: 4 expert: 4 expert_slack: 1"),
        std::string("data: 8 expert: 8 expert_slack: 1.5 zero: 2"),
        "data: 2 expert: 4 expert_slack: 1" + sequence,
        std::string("context: 2 expert: 2 expert_slack: 1"),
        std::string("data: 2 expert: 2 expert_slack: 1 pipeline: 2 "
                    "pipeline_schedule: 'zb_v'")}) {
    SCOPED_TRACE(cut);
    ExpectSame({{Cut(job, cut), kSteps}}, job);
  }
}

}  // namespace
}  // namespace troupe
