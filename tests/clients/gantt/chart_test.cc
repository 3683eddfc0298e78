#include "clients/gantt/chart.h"

#include <set>

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

TEST(Chart, PutsRanksOnOneAxis) {
  const Chart chart = LayOut(SampleTimeline(/*predicted=*/false));
  EXPECT_EQ(chart.title, "measured, step 20");
  EXPECT_NEAR(chart.seconds, 0.1, 1e-9);  // rank 1 starts 10 ms late
  EXPECT_NEAR(chart.step_seconds, 0.09, 1e-9);
  ASSERT_EQ(chart.ranks.size(), 2);
  ASSERT_EQ(chart.ranks[0].rows.size(), 3);
  EXPECT_EQ(chart.ranks[0].rank, 0);
  EXPECT_EQ(chart.ranks[0].rows[0].lane, "compute");
  EXPECT_TRUE(chart.ranks[0].rows[0].is_compute);
  EXPECT_EQ(chart.ranks[0].rows[1].lane, "collective");
  EXPECT_EQ(chart.ranks[0].rows[2].lane, "data");
  EXPECT_FALSE(chart.ranks[0].rows[2].is_compute);
  const Bar& forward = chart.ranks[1].rows[0].bars[0];
  EXPECT_EQ(forward.kind, BarKind::kForward);
  EXPECT_NEAR(forward.start, 0.016, 1e-9);
  EXPECT_EQ(forward.label, "0");
  EXPECT_EQ(forward.title,
            "FORWARD unit 0, micro-batch 0: 16.00 to 36.00 ms (20.00 ms)");
  const Bar& sum = chart.ranks[0].rows[1].bars[0];
  EXPECT_NEAR(sum.run, 0.07, 1e-9);
  EXPECT_EQ(sum.title,
            "REDUCE_GRADS unit 1: 60.00 to 80.00 ms (20.00 ms, 10.00 of them "
            "waiting)");
  EXPECT_TRUE(chart.waits);
}

TEST(Chart, OfNothingIsEmpty) {
  const Chart chart = LayOut(Timeline());
  EXPECT_EQ(chart.seconds, 0);
  EXPECT_EQ(chart.bubble, 0);
  EXPECT_TRUE(chart.ranks.empty());
}

TEST(Chart, NamesRangesOfUnits) {
  Timeline timeline;
  Span& span = *timeline.add_ranks()->add_spans();
  span.set_kind(Instruction::REDUCE_GRADS);
  span.set_lane(LaneNamed("COLLECTIVE"));
  span.set_unit(3);
  span.set_unit_count(2);
  EXPECT_EQ(LayOut(timeline).ranks[0].rows[0].bars[0].title,
            "REDUCE_GRADS units 3-4: 0.00 to 0.00 ms (0.00 ms)");
}

// (ranks - 1) / (micro-batches + ranks - 1), were there nothing but passes.
TEST(Chart, BubbleOfAPipelineIsThePapers) {
  const Chart chart = LayOut(MakePipeline(
      OneForwardOneBackward(4, 8),
      {.pass_ns = 900'000'000, .transfer_ns = 0, .alternating = true}));
  const double step = 3 * 0.9 * (8 + 3) + 0.9 / 4;
  EXPECT_NEAR(chart.step_seconds, step, 1e-6);
  for (const RankRows& rank : chart.ranks) {
    EXPECT_NEAR(rank.bubble, 1 - (3 * 0.9 * 8 + 0.9 / 4) / step, 1e-6);
  }
  EXPECT_NEAR(chart.bubble, 3.0 / 11, 0.003);
}

TEST(Chart, OneBarForAPassOverAStage) {
  const Timeline timeline =
      MakePipeline(OneForwardOneBackward(4, 8), {.alternating = true});
  const Chart chart = LayOut(timeline);
  // Of each micro-batch one forward and one backward, and the step.
  EXPECT_EQ(chart.ranks[2].rows[0].bars.size(), 2 * 8 + 1);
  const Bar& backward = chart.ranks[3].rows[0].bars[1];
  EXPECT_EQ(backward.pieces.size(), 6);
  EXPECT_EQ(backward.title.substr(0, backward.title.find(':')),
            "BACKWARD_INPUT, BACKWARD_WEIGHT units 9-11, micro-batch 0");
  const Chart spans = LayOut(timeline, {.merge_units = false});
  EXPECT_EQ(spans.ranks[2].rows[0].bars.size(), 9 * 8 + 1);
  EXPECT_EQ(spans.bubble, chart.bubble);
}

TEST(Chart, TellsTheStagesOfARankApart) {
  const std::vector<Stage> stages = StagesOf(8, 3);
  const Chart chart =
      LayOut(MakePipeline(Interleaved(4, 8), {}), {.stages = stages});
  EXPECT_EQ(chart.chunks_max, 2);
  std::set<int> chunks;
  for (const Bar& bar : chart.ranks[1].rows[0].bars) {
    if (bar.kind != BarKind::kForward) continue;
    chunks.insert(bar.chunk);
    // Stage 1 has units 3 to 5, stage 5 units 15 to 17.
    EXPECT_EQ(bar.chunk, bar.title.find("units 15-17") != std::string::npos);
  }
  EXPECT_EQ(chunks, (std::set<int>{0, 1}));
}

TEST(Chart, MarksWorkForALaterStep) {
  const Chart chart = LayOut(MakePipeline(Asynchronous(4, 8), {}));
  EXPECT_TRUE(chart.works_ahead);
  int ahead = 0;
  for (const Bar& bar : chart.ranks[0].rows[0].bars) {
    ahead += bar.ahead > 0;
    EXPECT_EQ(bar.ahead > 0,
              bar.title.find(", for the step 1 later") != std::string::npos);
  }
  EXPECT_EQ(ahead, 3) << "as many as there are ranks behind it";
}

TEST(Chart, HopsLeadFromRowToRow) {
  const Chart chart = LayOut(MakePipeline(OneForwardOneBackward(4, 8), {}));
  ASSERT_GE(chart.hops.size(), 6);
  for (const Hop& hop : chart.hops) {
    EXPECT_EQ(std::abs(hop.from.rank - hop.to.rank), 1);
    EXPECT_LE(hop.from.at, hop.to.at);
    EXPECT_EQ(chart.ranks[hop.from.rank].rows[hop.from.row].lane,
              chart.ranks[hop.to.rank].rows[hop.to.row].lane);
  }
}

}  // namespace
}  // namespace troupe
