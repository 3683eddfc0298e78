#include "worker/engine/pending_reports.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

PendingReport OfStep(int64_t step) {
  return {.finished = {.context = {.step = step}}, .memory_bytes = 100 * step};
}

TEST(PendingReports, GivesUpAStepWhenItIsAskedForIt) {
  PendingReports pending;
  for (const int64_t step : {5, 6, 7}) pending.Add(OfStep(step));
  // Of an earlier run, not reported by this one.
  EXPECT_FALSE(pending.Take(4).has_value());
  const auto report = pending.Take(5);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->finished.context.step, 5);
  EXPECT_EQ(report->memory_bytes, 500);
  EXPECT_FALSE(pending.Take(5).has_value());
  EXPECT_TRUE(pending.Take(6).has_value());
  EXPECT_TRUE(pending.Take(7).has_value());
  EXPECT_FALSE(pending.Take(8).has_value());
}

}  // namespace
}  // namespace troupe
