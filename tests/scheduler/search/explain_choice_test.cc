#include "scheduler/search/explain_choice.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/search/changes.h"
#include "scheduler/simulate/gpu_link.h"
#include "scheduler/simulate/links.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

JobSpec OpenJob(int blocks = 2) {
  JobSpec job = ExampleJob({.blocks = blocks});
  job.clear_parallelism();
  job.mutable_parallelism()->set_mode("auto");
  job.mutable_training()->set_global_batch_size(4 * blocks);
  return job;
}

std::vector<WorkerDescription> WorkersOf(
    const std::vector<std::string>& hosts) {
  std::vector<WorkerDescription> workers =
      ExampleWorkers(static_cast<int>(hosts.size()));
  for (size_t i = 0; i < hosts.size(); ++i) workers[i].set_host(hosts[i]);
  return workers;
}

std::vector<WorkerDescription> OneWorkerWith(int64_t bytes) {
  std::vector<WorkerDescription> workers = ExampleWorkers(1);
  workers[0].mutable_budgets(0)->set_bytes(bytes);
  return workers;
}

const ChangedChoice& ChangeOf(const Explanation& explanation,
                              const std::string& change) {
  for (const ChangedChoice& one : explanation.search().changes()) {
    if (one.change() == change) return one;
  }
  ADD_FAILURE() << "no " << change;
  return ChangedChoice::default_instance();
}

std::vector<std::string> ChangesOf(const Explanation& explanation) {
  std::vector<std::string> names;
  for (const ChangedChoice& one : explanation.search().changes()) {
    names.push_back(one.change());
  }
  return names;
}

TEST(ExplainChoice, HasEveryEstimate) {
  const SearchSummary search =
      ExplainChoice(OpenJob(), WorkersOf({"a", "a"})).value().search();
  int64_t fitting = 0;
  for (const EstimatedWay& way : search.estimates()) {
    fitting += way.fits();
    EXPECT_GT(way.step_seconds(), 0);
    EXPECT_GT(way.memory_bytes(), 0);
    EXPECT_GE(way.ranks(), 1);
    EXPECT_LE(way.ranks(), 2);
  }
  EXPECT_EQ(fitting, search.estimated());
  // The search alone does not carry them.
  EXPECT_TRUE(ChooseParallelism(OpenJob(), WorkersOf({"a", "a"}))
                  .value()
                  .explanation.search()
                  .estimates()
                  .empty());
}

TEST(ExplainChoice, TriesTheChangesThatApply) {
  EXPECT_THAT(ChangesOf(ExplainChoice(OpenJob(), WorkersOf({"a"})).value()),
              ElementsAre("10 % more device memory", "10 % less device memory",
                          "twice the batch", "half the batch"));
  EXPECT_THAT(
      ChangesOf(ExplainChoice(OpenJob(), WorkersOf({"a", "a"})).value()),
      Contains("half the bandwidth within hosts"));
  EXPECT_THAT(
      ChangesOf(ExplainChoice(OpenJob(), WorkersOf({"a", "b"})).value()),
      Contains("half the bandwidth between hosts"));
}

// What is chosen is no worse than the choice as it is.
TEST(ExplainChoice, ComparesWithTheChoiceAsItIs) {
  const std::vector<WorkerDescription> workers = WorkersOf({"a", "a", "b"});
  const Explanation explanation = ExplainChoice(OpenJob(), workers).value();
  const double now = explanation.ways(0).step_seconds();
  ASSERT_FALSE(explanation.search().changes().empty());
  for (const ChangedChoice& change : explanation.search().changes()) {
    SCOPED_TRACE(change.change());
    EXPECT_GT(change.step_seconds(), 0);
    EXPECT_GT(change.tokens_per_second(), 0);
    if (change.choice_step_seconds() == 0) continue;
    EXPECT_LE(change.step_seconds(), change.choice_step_seconds());
    if (!change.is_same()) continue;
    EXPECT_EQ(change.fields().SerializeAsString(),
              explanation.ways(0).fields().SerializeAsString());
  }
  EXPECT_GT(ChangeOf(explanation, "twice the batch").step_seconds(), now);
  EXPECT_LT(ChangeOf(explanation, "half the batch").step_seconds(), now);
  EXPECT_GE(ChangeOf(explanation, "half the bandwidth between hosts")
                .choice_step_seconds(),
            now);
  EXPECT_EQ(explanation.SerializeAsString(),
            ExplainChoice(OpenJob(), workers).value().SerializeAsString());
}

// With a little less than it wants, the choice recomputes; 10 % more is enough.
TEST(ExplainChoice, MoreMemoryChangesTheChoice) {
  JobSpec job = OpenJob(/*blocks=*/4);
  job.mutable_training()->set_micro_batch_size(4);
  job.mutable_memory()->set_mode("auto");
  const ChosenWays ample =
      ChooseParallelism(job, OneWorkerWith(int64_t{1} << 30)).value();
  const ExplainedWay& wanted = ample.explanation.ways(0);
  ASSERT_EQ(wanted.fields().recompute(), "");
  const Explanation explanation =
      ExplainChoice(job, OneWorkerWith(wanted.memory_bytes() * 95 / 100))
          .value();
  ASSERT_NE(explanation.ways(0).fields().recompute(), "");
  const ChangedChoice& more = ChangeOf(explanation, "10 % more device memory");
  EXPECT_FALSE(more.is_same());
  EXPECT_EQ(more.fields().recompute(), "");
  EXPECT_NEAR(more.step_seconds(), wanted.step_seconds(), 1e-9);
  EXPECT_NEAR(more.choice_step_seconds(), explanation.ways(0).step_seconds(),
              1e-9);
}

// Time that is over costs the comparisons, not the choice.
TEST(ExplainChoice, KeepsTheChoiceWhenItHasToEnd) {
  const std::vector<WorkerDescription> workers = WorkersOf({"a"});
  int64_t asked = 0;
  const MayGoOn count = [&asked] {
    ++asked;
    return absl::OkStatus();
  };
  const ChosenWays choice =
      ChooseParallelism(OpenJob(), workers, count).value();
  int64_t left = asked;
  const MayGoOn until_then = [&left] {
    return left-- > 0 ? absl::OkStatus()
                      : absl::DeadlineExceededError("time is over");
  };
  const auto explanation = ExplainChoice(OpenJob(), workers, until_then);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  EXPECT_EQ(explanation->ways(0).SerializeAsString(),
            choice.explanation.ways(0).SerializeAsString());
  EXPECT_THAT(ChangesOf(*explanation),
              ElementsAre("10 % more device memory: not tried: time is over",
                          "10 % less device memory: not tried: time is over",
                          "twice the batch: not tried: time is over",
                          "half the batch: not tried: time is over"));
  for (const ChangedChoice& change : explanation->search().changes()) {
    EXPECT_TRUE(change.is_same());
    EXPECT_EQ(change.step_seconds(), 0);
  }
}

TEST(ExplainChoice, SaysWhereNothingFits) {
  JobSpec job = OpenJob();
  job.mutable_training()->set_micro_batch_size(1);
  const int64_t bytes = ChooseParallelism(job, OneWorkerWith(int64_t{1} << 30))
                            .value()
                            .explanation.ways(0)
                            .memory_bytes();
  const Explanation explanation =
      ExplainChoice(job, OneWorkerWith(bytes)).value();
  const ChangedChoice& less = ChangeOf(explanation, "10 % less device memory");
  EXPECT_EQ(less.step_seconds(), 0);
  EXPECT_EQ(less.choice_step_seconds(), 0);
  EXPECT_FALSE(less.has_fields());
  EXPECT_TRUE(ChangeOf(explanation, "10 % more device memory").is_same());
}

const InputChange& ChangeNamed(const std::string& text) {
  for (const InputChange& change : Changes()) {
    if (change.text == text) return change;
  }
  ADD_FAILURE() << "no " << text;
  return Changes().front();
}

// Of a network that nobody has measured, too, which the workers of a host
// share.
TEST(Changes, ScaleTheNetwork) {
  Changeable what = {.job = OpenJob(), .workers = WorkersOf({"a", "a", "b"})};
  what.workers[2].mutable_network()->mutable_rate()->set_bytes_per_second(6e9);
  const double assumed = NetworkOf(what.workers[0]).bytes_per_second();
  const InputChange& half = ChangeNamed("half the bandwidth between hosts");
  ASSERT_TRUE(half.make(what));
  EXPECT_EQ(NetworkOf(what.workers[0]).bytes_per_second(), assumed / 2);
  ASSERT_EQ(what.workers[0].nics_size(), 1);
  EXPECT_EQ(what.workers[0].nics(0).name(), what.workers[1].nics(0).name());
  EXPECT_EQ(NetworkOf(what.workers[2]).bytes_per_second(), 3e9);
  Changeable one = {.job = OpenJob(), .workers = WorkersOf({"a", "a"})};
  EXPECT_FALSE(half.make(one));
}

// Also of GPUs, whose link is told from their names.
TEST(Changes, ScaleLinksWithinHosts) {
  Changeable what = {.job = OpenJob(), .workers = WorkersOf({"a", "a"})};
  what.workers[1].mutable_gpu()->set_name("NVIDIA H200");
  const double nvlink = NcclLinkOf(what.workers[1].gpu())->bytes_per_second();
  const double loopback =
      what.workers[0].calibration().loopback().bytes_per_second();
  ASSERT_TRUE(ChangeNamed("half the bandwidth within hosts").make(what));
  EXPECT_FALSE(NcclLinkOf(what.workers[1].gpu()).has_value());
  EXPECT_EQ(what.workers[1].calibration().loopback().bytes_per_second(),
            nvlink / 2);
  EXPECT_EQ(what.workers[0].calibration().loopback().bytes_per_second(),
            loopback / 2);
}

}  // namespace
}  // namespace troupe
