#include "clients/gantt/chrome_trace.h"

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

TEST(ChromeTrace, HasAProcessForEachRankAndAThreadForEachLane) {
  const nlohmann::json trace = nlohmann::json::parse(ChromeTrace(
      {LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))}));
  int bars = 0;
  std::vector<std::string> processes;
  std::vector<std::string> threads;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes.push_back(event["args"]["name"]);
    } else if (event["name"] == "thread_name") {
      threads.push_back(event["args"]["name"]);
    } else {
      EXPECT_EQ(event["ph"], "X");
      ++bars;
    }
  }
  EXPECT_EQ(bars, 24);
  EXPECT_EQ(processes,
            (std::vector<std::string>{
                "rank 0, measured, step 20", "rank 1, measured, step 20",
                "rank 0, predicted", "rank 1, predicted"}));
  EXPECT_EQ(threads.size(), 12);
  const auto& first = trace["traceEvents"][2];
  EXPECT_EQ(first["name"], "FORWARD unit 0, micro-batch 0");
  EXPECT_NEAR(first["ts"].get<double>(), 6000, 1e-6);
  EXPECT_NEAR(first["dur"].get<double>(), 20000, 1e-6);
}

}  // namespace
}  // namespace troupe
