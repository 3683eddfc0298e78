// docs/plan.md has a drawing of a plan with two unlike stages, which is made
// from the plan's prediction. To draw it anew:
//
//   TROUPE_DOCS_OUT=$PWD/docs bazel-bin/tests/golden/golden_test
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "clients/gantt/chart.h"
#include "clients/gantt/text.h"
#include "gtest/gtest.h"
#include "proto/base/check.h"
#include "scheduler/planner/planner.h"
#include "scheduler/simulate/simulate.h"
#include "tests/scheduler/example_job.h"

namespace troupe {
namespace {

constexpr int kColumns = 110;

// The first stage is shared by columns, the second by samples.
JobSpec UnlikeStages() {
  JobSpec job = ExampleJob({.micro_batches = 3, .blocks = 4});
  job.mutable_model()->set_tie_word_embeddings(false);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(2);
  StrategySpec& first = *parallelism.add_strategies();
  first.set_stage(0);
  first.set_tensor(2);
  StrategySpec& second = *parallelism.add_strategies();
  second.set_stage(1);
  second.set_batch(2);
  return job;
}

Chart ChartOf(const JobSpec& job) {
  const std::vector<WorkerDescription> workers = ExampleWorkers(4);
  const absl::StatusOr<Plan> plan = CompilePlan(job, workers);
  CHECK_OK(plan.status());
  return LayOut(StepTimeline(*plan, PredictStep(*plan, workers)),
                {.stages = {plan->stages().begin(), plan->stages().end()}});
}

bool HasLane(const RankRows& rank, const std::string& lane) {
  for (const Row& row : rank.rows) {
    if (row.lane == lane) return true;
  }
  return false;
}

double ComputeSeconds(const RankRows& rank) {
  double seconds = 0;
  for (const Row& row : rank.rows) {
    for (const Bar& bar : row.bars) {
      if (row.is_compute) seconds += bar.end - bar.run;
    }
  }
  return seconds;
}

// Ranks of a stage look alike; only those of the first exchange within units.
TEST(PlanPage, ADrawingShowsThatStagesAreUnlike) {
  const Chart chart = ChartOf(UnlikeStages());
  ASSERT_EQ(chart.ranks.size(), 4u);
  for (const RankRows& rank : chart.ranks) {
    EXPECT_EQ(HasLane(rank, "exchanges"), rank.rank < 2) << rank.rank;
    EXPECT_TRUE(HasLane(rank, "activations")) << rank.rank;
    EXPECT_TRUE(HasLane(rank, "gradients")) << rank.rank;
    const RankRows& first = chart.ranks[rank.rank < 2 ? 0 : 2];
    EXPECT_EQ(rank.rows.size(), first.rows.size()) << rank.rank;
    EXPECT_NEAR(ComputeSeconds(rank), ComputeSeconds(first),
                1e-2 * ComputeSeconds(first))
        << rank.rank;
  }
}

std::string Drawing() {
  const std::string text = ChartText({ChartOf(UnlikeStages())}, kColumns);
  return absl::StrCat("```text\n", text.substr(0, text.find("\npath") + 1),
                      "```\n");
}

TEST(PlanPage, HasThisDrawing) {
  std::stringstream read;
  read << std::ifstream("docs/plan.md").rdbuf();
  std::string page = read.str();
  const std::string begin = "<!-- made by tests: unlike stages -->\n";
  const size_t from = page.find(begin);
  ASSERT_NE(from, std::string::npos);
  const size_t to = page.find("<!-- end -->", from);
  ASSERT_NE(to, std::string::npos);
  std::string made = page;
  made.replace(from + begin.size(), to - from - begin.size(), Drawing());
  if (const char* const out = std::getenv("TROUPE_DOCS_OUT")) {
    std::ofstream(absl::StrCat(out, "/plan.md")) << made;
    return;
  }
  EXPECT_EQ(page, made);
}

}  // namespace
}  // namespace troupe
