// The benchmark's scenario, small and quick: it works, and its end is clean.
#include <filesystem>

#include "gtest/gtest.h"
#include "tests/bench/scheduler_scale/scenario.h"

namespace troupe {
namespace {

TEST(SchedulerScale, AJobOnFiftyWorkersFromItsStartToItsEnd) {
  ScenarioOptions options;
  options.state = std::filesystem::path(testing::TempDir()) / "state";
  std::filesystem::create_directories(options.state);
  options.workers = 50;
  options.steps = 24;
  options.queued = 5;
  options.flooding = 10;
  options.step = absl::Milliseconds(20);
  options.idle = absl::Milliseconds(100);
  const ScenarioReport report = RunScenario(options);
  EXPECT_EQ(report.end, "CANCELLED");
  EXPECT_EQ(report.exit_code, 0);
  EXPECT_EQ(report.workers_lost, 0);
  EXPECT_EQ(report.steps_seen, 1 + options.steps + options.steps / 2);
  EXPECT_GT(report.flood_per_second, 0);
  EXPECT_EQ(report.flood_refused, 0);
  EXPECT_GT(report.hand_out_bytes, 0);
  EXPECT_GT(report.store_bytes_other, 12 * options.workers);
  EXPECT_LT(report.store_bytes_other, 20 * options.workers);
  EXPECT_GT(report.resident_bytes_max, 0);
  EXPECT_NE(ReportText(options, report).find("running: ListJobs"),
            std::string::npos);
}

}  // namespace
}  // namespace troupe
