#include "clients/gantt/path_stretches.h"

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

constexpr double kMs = 1e-3;

TEST(PathStretches, SayWhoWhatAndHowLong) {
  const Timeline timeline = SampleTimeline(/*predicted=*/false);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const auto stretches = Stretches(spans, FindCriticalPath(spans));
  ASSERT_EQ(stretches.size(), 3);
  EXPECT_EQ(stretches[0].who, "rank 1");
  EXPECT_EQ(stretches[0].what,
            "LOAD_BATCH, FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT of "
            "micro-batch 0");
  EXPECT_NEAR(stretches[0].seconds, 60 * kMs, 1e-9);
  EXPECT_NEAR(stretches[0].waited_seconds, 0, 1e-9);
  EXPECT_EQ(stretches[1].what, "REDUCE_GRADS unit 1");
  EXPECT_NEAR(stretches[1].seconds, 20 * kMs, 1e-9);
  EXPECT_EQ(stretches[2].what, "STEP unit 0");
}

TEST(PathStretches, GoFromRankToRankByTransfers) {
  const Timeline timeline = MakePipeline(
      OneForwardOneBackward(2, 2),
      {.units_per_stage = 2, .pass_ns = 1'000'000, .transfer_ns = 100'000});
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const auto stretches = Stretches(spans, FindCriticalPath(spans));
  ASSERT_EQ(stretches.size(), 6);
  EXPECT_EQ(stretches[0].who, "rank 0");
  EXPECT_EQ(stretches[0].what, "FORWARD of micro-batch 0");
  EXPECT_EQ(stretches[1].who, "rank 0 to 1");
  EXPECT_NEAR(stretches[1].seconds, 0.1 * kMs, 1e-9);
  EXPECT_EQ(stretches[2].who, "rank 1");
  EXPECT_EQ(stretches[2].what,
            "FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT of micro-batches 0-1");
  EXPECT_EQ(stretches[3].who, "rank 1 to 0");
  EXPECT_EQ(stretches[4].who, "rank 0");
  EXPECT_EQ(stretches[4].what,
            "BACKWARD_INPUT, BACKWARD_WEIGHT, STEP of micro-batch 1");
  EXPECT_EQ(stretches[5].what, "REDUCE_SCALARS");
}

TEST(PathStretches, SayWhereNothingRan) {
  Timeline timeline;
  *timeline.mutable_lanes() = AllLanes();
  RankTimeline& rank = *timeline.add_ranks();
  AddSpan({Instruction::LOAD_BATCH, LaneNamed("DATA"), -1, 0, 0, 2}, rank);
  AddSpan({Instruction::FORWARD, LaneNamed("COMPUTE"), 0, 0, 5, 8}, rank);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const auto stretches = Stretches(spans, FindCriticalPath(spans));
  ASSERT_EQ(stretches.size(), 1);
  EXPECT_NEAR(stretches[0].seconds, 5 * kMs, 1e-9);
  EXPECT_NEAR(stretches[0].waited_seconds, 3 * kMs, 1e-9);
}

TEST(PathStretches, OfNothing) {
  EXPECT_TRUE(Stretches({}, CriticalPath()).empty());
}

}  // namespace
}  // namespace troupe
