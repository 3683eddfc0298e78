#include "clients/gantt/chart.h"

#include "gtest/gtest.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

TEST(Chart, PutsRanksOnOneAxis) {
  const Chart chart = LayOut(SampleTimeline(/*predicted=*/false));
  EXPECT_EQ(chart.title, "measured, step 20");
  EXPECT_NEAR(chart.seconds, 0.1, 1e-9);  // rank 1 starts 10 ms late
  ASSERT_EQ(chart.rows.size(), 6);
  EXPECT_EQ(chart.rows[0].rank, 0);
  EXPECT_EQ(chart.rows[0].lane, "compute");
  EXPECT_TRUE(chart.rows[0].first_of_rank);
  EXPECT_EQ(chart.rows[1].lane, "collective");
  EXPECT_FALSE(chart.rows[1].first_of_rank);
  EXPECT_EQ(chart.rows[2].lane, "data");
  EXPECT_EQ(chart.rows[3].rank, 1);
  const Bar& forward = chart.rows[3].bars[0];
  EXPECT_EQ(forward.kind, BarKind::kForward);
  EXPECT_NEAR(forward.start, 0.016, 1e-9);
  EXPECT_EQ(forward.label, "0");
  EXPECT_EQ(forward.title, "FORWARD unit 0, micro-batch 0: 16.00 to 36.00 ms");
}

TEST(Chart, OfNothingIsEmpty) {
  const Chart chart = LayOut(Timeline());
  EXPECT_EQ(chart.seconds, 0);
  EXPECT_TRUE(chart.rows.empty());
}

TEST(Chart, NamesRangesOfUnits) {
  Timeline timeline;
  Span& span = *timeline.add_ranks()->add_spans();
  span.set_kind(Instruction::REDUCE_GRADS);
  span.set_lane(COLLECTIVE);
  span.set_unit(3);
  span.set_unit_count(2);
  EXPECT_EQ(LayOut(timeline).rows[0].bars[0].title,
            "REDUCE_GRADS units 3-4: 0.00 to 0.00 ms");
}

}  // namespace
}  // namespace troupe
