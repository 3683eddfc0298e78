#include "scheduler/planner/explain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "scheduler/planner/planner.h"
#include "scheduler/planner/short_steps.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string TextOf(const ExplainedWay& way) {
  return way.fields().parallelism().ShortDebugString();
}

const ExplainedWay* Find(const Explanation& explanation,
                         const std::string& text) {
  for (const ExplainedWay& way : explanation.ways()) {
    if (TextOf(way) == text) return &way;
  }
  return nullptr;
}

const ExplainedWay* FindJob(const Explanation& explanation) {
  for (const ExplainedWay& way : explanation.ways()) {
    if (way.fields().is_job()) return &way;
  }
  return nullptr;
}

// Each on a host of its own, with such a network.
std::vector<WorkerDescription> Apart(int count, double bytes_per_second) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (WorkerDescription& worker : workers) {
    worker.set_host(worker.name());
    worker.mutable_network()->mutable_rate()->set_latency_us(0.1);
    worker.mutable_network()->mutable_rate()->set_bytes_per_second(
        bytes_per_second);
  }
  return workers;
}

// Where the network is slow, bytes decide, else work.
TEST(Explain, PrefersFewBytesOverASlowNetworkAndLittleWorkOverAFastOne) {
  const char kTensor[] = "data: 2 tensor: 2 sequence_parallel: true";
  // Gradients that are too large to be sent straight to each rank.
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 8});
  job.mutable_model()->set_hidden_size(64);
  job.mutable_model()->set_max_position_embeddings(128);
  const Explanation slow = Explain(job, Apart(4, 1e3)).value();
  EXPECT_LT(FindJob(slow)->step_seconds(), Find(slow, kTensor)->step_seconds());
  for (const ExplainedWay& way : slow.ways()) {
    EXPECT_LE(slow.ways(0).bytes_sent_per_step(), way.bytes_sent_per_step());
  }
  EXPECT_THAT(slow.ways(0).advice(),
              StartsWith("limited by communication not hidden, 100 % "));
  job = ExampleJob({.data = 4, .micro_batches = 2});
  const Explanation fast = Explain(job, Apart(4, 1e12)).value();
  EXPECT_LT(Find(fast, kTensor)->step_seconds(), FindJob(fast)->step_seconds());
  EXPECT_THAT(fast.ways(0).advice(), StartsWith("limited by compute, 100 % "));
}

TEST(Explain, PredictsAsPlansAre) {
  JobSpec job = ExampleJob({.data = 4, .micro_batches = 2});
  const std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const Explanation explanation = Explain(job, workers).value();
  const auto expect_alike = [&](const ExplainedWay& way) {
    const Prediction predicted = CompilePlan(job, workers).value().prediction();
    EXPECT_EQ(way.step_seconds(), predicted.step_seconds());
    EXPECT_EQ(way.tokens_per_second(), predicted.tokens_per_second());
    EXPECT_EQ(way.bytes_sent_per_step(),
              predicted.ranks(0).bytes_sent_per_step());
    EXPECT_EQ(way.memory_bytes(), predicted.ranks(0).peak_bytes());
    EXPECT_EQ(way.budget_bytes(), int64_t{1} << 30);
    EXPECT_TRUE(way.fits());
  };
  ASSERT_NE(FindJob(explanation), nullptr);
  EXPECT_EQ(TextOf(*FindJob(explanation)), "data: 4");
  expect_alike(*FindJob(explanation));
  job.mutable_parallelism()->set_data(2);
  job.mutable_parallelism()->set_tensor(2);
  expect_alike(*Find(explanation, "data: 2 tensor: 2"));
}

TEST(Explain, FasterLinksAreWhatTheyWouldBe) {
  const JobSpec job = ExampleJob({.data = 4});
  std::vector<WorkerDescription> workers = Apart(4, 1e6);
  const Explanation explanation = Explain(job, workers).value();
  for (WorkerDescription& worker : workers) {
    worker.mutable_network()->mutable_rate()->set_bytes_per_second(2e6);
  }
  const ExplainedWay& way = *FindJob(explanation);
  EXPECT_EQ(way.step_seconds_links_between_hosts(),
            CompilePlan(job, workers).value().prediction().step_seconds());
  EXPECT_FALSE(way.has_step_seconds_links_within_hosts());
  EXPECT_THAT(explanation.ways(0).advice(), HasSubstr("; links of 2x: -"));
}

TEST(Explain, SortsByTimeOfAStep) {
  for (const double bytes_per_second : {1e4, 1e8, 1e12}) {
    const Explanation explanation =
        Explain(ExampleJob({.data = 4}), Apart(4, bytes_per_second)).value();
    for (int i = 1; i < explanation.ways_size(); ++i) {
      EXPECT_LE(explanation.ways(i - 1).step_seconds(),
                explanation.ways(i).step_seconds());
    }
  }
}

TEST(Explain, NamesWhatCannotBePlanned) {
  const Explanation explanation =
      Explain(ExampleJob({.data = 4}), ExampleWorkers(4)).value();
  EXPECT_EQ(explanation.left_out(), 0);
  ASSERT_GT(explanation.refused_size(), 0);
  EXPECT_EQ(explanation.refused(0).fields().parallelism().ShortDebugString(),
            R"(context: 4 context_method: "ulysses")");
  EXPECT_THAT(explanation.refused(0).reason(),
              StartsWith("parallelism.context: 4 ranks cannot share 2 "));
}

TEST(Explain, AJobThatIsRefusedHasOtherWays) {
  JobSpec job = ExampleJob({.micro_batches = 4});
  job.mutable_parallelism()->set_context(4);
  const Explanation explanation = Explain(job, ExampleWorkers(4)).value();
  EXPECT_TRUE(explanation.refused(0).fields().is_job());
  EXPECT_EQ(FindJob(explanation), nullptr);
  EXPECT_NE(Find(explanation, "data: 4"), nullptr);
}

// What is wrong whatever the ways are is said as CompilePlan says it.
TEST(Explain, RefusesWhatNoWayHelps) {
  JobSpec job = ExampleJob({.data = 2});
  EXPECT_EQ(Explain(job, ExampleWorkers(1)).status(),
            CompilePlan(job, ExampleWorkers(1)).status());
  job.mutable_model()->set_num_attention_heads(3);
  EXPECT_EQ(Explain(job, ExampleWorkers(2)).status(),
            CompilePlan(job, ExampleWorkers(2)).status());
}

TEST(Explain, SaysWhatWouldMakeThemFit) {
  const JobSpec job = ExampleJob({.data = 4});
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const auto memory_of = [&](const std::string& text) {
    return Find(Explain(job, workers).value(), text)->memory_bytes();
  };
  const int64_t enough = memory_of("data: 4 zero: 1");
  ASSERT_LT(enough, memory_of("data: 4"));
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(enough);
  }
  const Explanation explanation = Explain(job, workers).value();
  const ExplainedWay& as_it_is = *FindJob(explanation);
  EXPECT_FALSE(as_it_is.fits());
  EXPECT_THAT(as_it_is.advice(), StartsWith("device memory: 1."));
  EXPECT_THAT(as_it_is.advice(), HasSubstr(" fits, then "));
  EXPECT_TRUE(explanation.ways(0).fits());
  bool fits = true;
  for (const ExplainedWay& way : explanation.ways()) {
    EXPECT_TRUE(fits || !way.fits()) << "those that fit come first";
    fits = way.fits();
  }
}

TEST(Explain, SaysWhatMemoryAutoTakes) {
  JobSpec job = ExampleJob({.data = 4});
  std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const Explanation as_given = Explain(job, workers).value();
  const int64_t needed = FindJob(as_given)->memory_bytes();
  job.mutable_memory()->set_mode("auto");
  EXPECT_EQ(FindJob(Explain(job, workers).value())->chosen_memory(), "");
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(needed - 1);
  }
  const Explanation explanation = Explain(job, workers).value();
  EXPECT_TRUE(FindJob(explanation)->fits());
  EXPECT_THAT(FindJob(explanation)->chosen_memory(), HasSubstr(" %)"));
}

TEST(Explain, PlansOnlySoMany) {
  JobSpec job = ExampleJob({.data = 64});
  job.mutable_model()->set_num_attention_heads(16);
  job.mutable_model()->set_max_position_embeddings(64);
  const Explanation explanation = Explain(job, ExampleWorkers(64)).value();
  EXPECT_EQ(explanation.ways_size(), kWaysMax);
  EXPECT_GT(explanation.left_out(), 0);
}

// Wherever it is asked.
TEST(Explain, EndsWhenItMayNotGoOn) {
  const JobSpec job = ExampleJob({.data = 2});
  std::vector<WorkerDescription> workers = ExampleWorkers(2);
  for (WorkerDescription& worker : workers) {
    worker.mutable_budgets(0)->set_bytes(1);
  }
  int asked = 0;
  const auto count = [&] {
    ++asked;
    return absl::OkStatus();
  };
  ASSERT_TRUE(Explain(job, workers, count).ok());
  ASSERT_GT(asked, 10);
  for (int left = 0; left < asked; left += asked / 10) {
    int remaining = left;
    EXPECT_EQ(Explain(job, workers,
                      [&] {
                        return remaining-- > 0 ? absl::OkStatus()
                                               : absl::CancelledError("gone");
                      })
                  .status(),
              absl::CancelledError("gone"));
  }
}

// What two shorter steps say of a long one is what its own plan says.
TEST(Explain, TellsLongStepsFromShortOnes) {
  JobSpec job = ExampleJob({.micro_batches = 300});
  job.mutable_parallelism()->set_tensor(2);
  job.mutable_parallelism()->set_sequence_parallel(true);
  const std::vector<WorkerDescription> workers = Apart(4, 1e6);
  for (const int pipeline : {1, 2}) {
    job.mutable_parallelism()->set_pipeline(pipeline);
    const Plan whole = TryPlan(job, workers, GatherRoom::kAll).value();
    const auto steps = ShortStepsOf(job, 4000).value();
    ASSERT_TRUE(steps.has_value());
    EXPECT_LT(steps->more_count, 100);
    EXPECT_EQ(steps->count, 300);
    const Prediction told = PredictionAt(
        *steps, TryPlan(steps->fewer, workers, GatherRoom::kAll)->prediction(),
        TryPlan(steps->more, workers, GatherRoom::kAll)->prediction());
    const Prediction& own = whole.prediction();
    EXPECT_NEAR(told.step_seconds() / own.step_seconds(), 1, 1e-3);
    EXPECT_NEAR(told.tokens_per_second() / own.tokens_per_second(), 1, 1e-3);
    for (int r = 0; r < own.ranks_size(); ++r) {
      EXPECT_EQ(told.ranks(r).bytes_sent_per_step(),
                own.ranks(r).bytes_sent_per_step());
      EXPECT_NEAR(
          told.ranks(r).compute_seconds() / own.ranks(r).compute_seconds(), 1,
          1e-3);
      EXPECT_EQ(told.ranks(r).peak_bytes(), own.ranks(r).peak_bytes());
    }
  }
  EXPECT_FALSE(ShortStepsOf(job, 1'000'000).value().has_value());
}

// Of each schedule that a search tries.
TEST(Explain, TellsStepsOfEachSchedule) {
  for (const Pipeline& row : Pipelines()) {
    if (row.tried_stages.empty()) continue;
    SCOPED_TRACE(row.name);
    JobSpec job = ExampleJob({.micro_batches = 96, .blocks = 8});
    job.mutable_parallelism()->set_pipeline(4);
    job.mutable_parallelism()->set_pipeline_schedule(std::string(row.name));
    job.mutable_parallelism()->set_virtual_stages(
        std::min(2, row.tried_stages.back()));
    const std::vector<WorkerDescription> workers = Apart(4, 1e9);
    const auto steps = ShortStepsOf(job, 10).value();
    ASSERT_TRUE(steps.has_value());
    EXPECT_EQ(steps->fewer_count, 8);
    EXPECT_EQ(steps->more_count, 12);
    const auto seconds = [&](const JobSpec& of) {
      return TryPlan(of, workers, GatherRoom::kAll)
          ->prediction()
          .step_seconds();
    };
    EXPECT_NEAR(
        steps->At(seconds(steps->fewer), seconds(steps->more)) / seconds(job),
        1, 0.01);
  }
}

TEST(Explain, PlansNoMoreThanTellsOfAStep) {
  const auto counts = [](const StepLength& length, int64_t instructions_max) {
    const auto steps = ShorterSteps(length, instructions_max);
    return steps.has_value() ? std::make_pair(steps->fewer, steps->more)
                             : std::make_pair(0, 0);
  };
  const std::pair<int, int> none = {0, 0};
  StepLength length = {
      .pipeline = 8, .micro_batches = 100, .of_micro_batch = 100};
  EXPECT_EQ(counts(length, 10'000), none);
  EXPECT_EQ(counts(length, 9'999), std::make_pair(16, 24));
  EXPECT_EQ(InstructionsToCompare(length, 9'999), 4'000);
  EXPECT_EQ(InstructionsToCompare(length, 10'000), 10'000);
  length.of_micro_batch = kLongMax / 24 + 1;
  EXPECT_EQ(counts(length, 10), std::make_pair(8, 16));
  // A step that is not longer than these is planned as it is.
  length.micro_batches = 16;
  EXPECT_EQ(counts(length, 10), none);
  // Replicas whose micro-batches differ would have other shares of fewer.
  length = {.micro_batches = 100, .is_even = false, .of_micro_batch = 100};
  EXPECT_EQ(counts(length, 10), none);
  length.is_even = true;
  EXPECT_EQ(counts(length, 10), std::make_pair(4, 6));
}

// Ways that exchange so often that their plans would be too long are compared
// all the same.
TEST(Explain, ComparesLongWaysToo) {
  const JobSpec job = ExampleJob({.data = 2, .micro_batches = 100});
  const Explanation explanation =
      Explain(job, ExampleWorkers(2), {}, /*instructions_max=*/600).value();
  EXPECT_EQ(explanation.ways_size(), 12);
  EXPECT_EQ(explanation.refused_size(), 0);
  const Explanation whole = Explain(job, ExampleWorkers(2)).value();
  for (const ExplainedWay& way : explanation.ways()) {
    const ExplainedWay& own = *Find(whole, TextOf(way));
    EXPECT_NEAR(way.step_seconds() / own.step_seconds(), 1, 1e-3);
    EXPECT_NEAR(way.tokens_per_second() / own.tokens_per_second(), 1, 1e-3);
    EXPECT_EQ(way.memory_bytes(), own.memory_bytes());
  }
}

}  // namespace
}  // namespace troupe
