#include "clients/gantt/text.h"

#include "gtest/gtest.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

TEST(ChartText, DrawsEveryLane) {
  EXPECT_EQ(
      ChartText({LayOut(SampleTimeline(/*predicted=*/true))}, 65),
      "predicted: 0 to 90.00 ms\n"
      "rank 0  compute     ...FFFFFFFFFFIIIIIIIIIIWWWWWWW..........OOOOO\n"
      "        collective  ..............................RRRRRRRRRR.....\n"
      "        data        LLL..........................................\n"
      "rank 1  compute     ...FFFFFFFFFFIIIIIIIIIIWWWWWWW..........OOOOO\n"
      "        collective  ..............................RRRRRRRRRR.....\n"
      "        data        LLL..........................................\n"
      "F forward  I backward, input  W backward, weight  R collective  O "
      "optimizer step  L data\n");
}

TEST(ChartText, OneScaleForAll) {
  const std::string text = ChartText(
      {LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))}, 60);
  EXPECT_NE(text.find("measured, step 20: 0 to 100.00 ms\n"),
            std::string::npos);
  // 90 of 100 ms: the predicted optimizer step ends before the row does.
  EXPECT_NE(text.find("OOOO....\n"), std::string::npos) << text;
  EXPECT_EQ(ChartText({LayOut(Timeline())}, 10).substr(0, 8), "measured");
}

}  // namespace
}  // namespace troupe
