#include "clients/gantt/text.h"

#include "gtest/gtest.h"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

TEST(ChartText, DrawsEveryLane) {
  EXPECT_EQ(
      ChartText({LayOut(SampleTimeline(/*predicted=*/true))}, 72),
      "F forward  I backward, input  W backward, weight  R collective  O "
      "optimizer step  L data\n"
      "\n"
      "predicted: step 90.00 ms, bubble 28.9%\n"
      "rank 0  compute     ...F0FFFFFFFFI0IIIIIIIIW0WWWWW..........OOOOO  "
      "28.9%\n"
      "        collective  ..............................RRRRRRRRRR.....\n"
      "        data        L0L..........................................\n"
      "rank 1  compute     ...F0FFFFFFFFI0IIIIIIIIW0WWWWW..........OOOOO  "
      "28.9%\n"
      "        collective  ..............................RRRRRRRRRR.....\n"
      "        data        L0L..........................................\n"
      "path                LLLFFFFFFFFFFIIIIIIIIIIWWWWWWWRRRRRRRRRROOOOO\n"
      "        on rank     111111111111111111111111111111111111111111111\n"
      "critical path: 90.00 ms: compute 64.00 ms (71.1%), collectives 20.00 ms "
      "(22.2%), other 6.00 ms (6.7%)\n"
      "  rank 1            60.00 ms  LOAD_BATCH, FORWARD, BACKWARD_INPUT, "
      "BACKWARD_WEIGHT of micro-batch 0\n"
      "  rank 1            20.00 ms  REDUCE_GRADS unit 1\n"
      "  rank 1            10.00 ms  STEP unit 0\n");
}

TEST(ChartText, ShowsWaitingAndWhereThePathGoes) {
  const std::string text = ChartText(
      {LayOut(MakePipeline(OneForwardOneBackward(2, 2),
                           {.pass_ns = 1'000'000, .transfer_ns = 500'000}))},
      80);
  EXPECT_NE(text.find("- waiting for other ranks"), std::string::npos);
  EXPECT_NE(text.find("rank 1  compute      ........F0FFFI0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("activations  -----T0T"), std::string::npos) << text;
  EXPECT_NE(
      text.find("  rank 0 to 1        0.50 ms  RECV unit 2, micro-batch 0 "
                "from rank 0\n"),
      std::string::npos)
      << text;
}

TEST(ChartText, OneScaleForAll) {
  const std::string text = ChartText(
      {LayOut(SampleTimeline(false)), LayOut(SampleTimeline(true))}, 60);
  EXPECT_NE(text.find("measured, step 20: step 90.00 ms"), std::string::npos);
  EXPECT_NE(text.find("measured, step 20 over predicted: step 90.00 over 90.00 "
                      "ms = 1.000, bubble 28.9% over 28.9%\n"),
            std::string::npos);
  // 90 of 100 ms: the predicted optimizer step ends before the row does.
  EXPECT_NE(text.find("OOO...  28.9%\n"), std::string::npos) << text;
  EXPECT_NE(ChartText({LayOut(Timeline())}, 10).find("measured"),
            std::string::npos);
}

TEST(ChartText, LeavesOutTheMiddleOfALongPath) {
  const std::string text = ChartText(
      {LayOut(MakePipeline(OneForwardOneBackward(8, 64),
                           {.jitter_ns = 90'000, .alternating = true}))},
      120);
  EXPECT_NE(text.find(" more stretches ...\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace troupe
