#include "clients/gantt/chrome_trace.h"

#include <map>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

TEST(ChromeTrace, HasAProcessForEachRankAndAThreadForEachLane) {
  const Json trace = Json::parse(ChromeTrace(
      {LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))}));
  std::vector<Json> bars;
  std::vector<std::string> processes;
  std::vector<std::string> threads;
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes.push_back(event["args"]["name"]);
    } else if (event["name"] == "thread_name") {
      threads.push_back(event["args"]["name"]);
    } else if (event["ph"] == "X") {
      bars.push_back(event);
    }
  }
  EXPECT_EQ(bars.size(), 24);
  EXPECT_EQ(processes,
            (std::vector<std::string>{
                "rank 0, measured, step 20", "rank 1, measured, step 20",
                "rank 0, predicted", "rank 1, predicted"}));
  EXPECT_EQ(threads.size(), 12);
  EXPECT_EQ(bars[0]["name"], "FORWARD unit 0, micro-batch 0");
  EXPECT_NEAR(bars[0]["ts"].get<double>(), 6000, 1e-6);
  EXPECT_NEAR(bars[0]["dur"].get<double>(), 20000, 1e-6);
  EXPECT_EQ(bars[0]["args"]["critical"], false) << "rank 1 starts late";
}

TEST(ChromeTrace, ArrowsLeadFromSendToReceive) {
  const Chart chart = LayOut(MakePipeline(OneForwardOneBackward(3, 4), {}),
                             {.merge_units = false});
  const Json trace = Json::parse(ChromeTrace({chart, chart}));
  std::map<int, Json> begins;
  std::map<int, Json> ends;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "s") begins[event["id"]] = event;
    if (event["ph"] == "f") ends[event["id"]] = event;
  }
  // Two borders, both ways, four micro-batches, two charts.
  ASSERT_EQ(begins.size(), 2 * 2 * 4 * 2);
  ASSERT_EQ(ends.size(), begins.size());
  for (const auto& [id, begin] : begins) {
    const Json& end = ends.at(id);
    EXPECT_LT(begin["ts"].get<double>(), end["ts"].get<double>());
    const int from = begin["pid"];
    const int to = end["pid"];
    EXPECT_EQ(std::abs(from - to), 1) << "next to each other, in one chart";
  }
}

}  // namespace
}  // namespace troupe
