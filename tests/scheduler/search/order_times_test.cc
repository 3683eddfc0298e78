#include "scheduler/search/order_times.h"

#include <algorithm>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"

namespace troupe {
namespace {

constexpr StageSeconds kStage = {
    .forward = 1, .backward = 2, .input = 1, .weight = 1};

OrderTimes TimesOf(const char* schedule, const PipelineShape& shape) {
  const ComputeOrder order =
      FindPipeline(schedule).value().order(shape).value();
  return TimeOrder(order, std::vector<StageSeconds>(shape.stages(), kStage), 0);
}

double EndOf(const OrderTimes& times) {
  return *std::max_element(times.ends.begin(), times.ends.end());
}

// (M + P - 1) (F + B), as the papers have it.
TEST(TimeOrder, IsTheClosedFormOf1f1b) {
  for (const int ranks : {1, 2, 4, 7}) {
    for (const int micro_batches : {1, 3, 8}) {
      const OrderTimes times =
          TimesOf("1f1b", {.ranks = ranks, .micro_batches = micro_batches});
      EXPECT_EQ(EndOf(times), 3 * (micro_batches + ranks - 1));
      const ComputeOrder order =
          FindPipeline("1f1b")
              .value()
              .order({.ranks = ranks, .micro_batches = micro_batches})
              .value();
      const std::vector<MostBytes> kept =
          MostKept(order, std::vector<KeptBytes>(ranks, {.for_weight = 10}));
      for (int r = 0; r < ranks; ++r) {
        EXPECT_EQ(kept[r].ever, 10 * std::min(ranks - r, micro_batches));
      }
    }
  }
}

// Gradients of weights that come later keep what they need until then, and
// free the rest before.
TEST(MostKept, CountsWhatIsDeferred) {
  using Step = ComputeStep;
  const Step forward = {.kind = Step::kForward};
  const Step input = {.kind = Step::kBackwardInput};
  const Step weight = {.kind = Step::kBackwardWeight};
  const auto of = [](Step step, int micro_batch) {
    step.micro_batch = micro_batch;
    return step;
  };
  const std::vector<KeptBytes> kept = {
      {.for_input = 1, .for_weight = 10, .deferred = 100}};
  const MostBytes at_once =
      MostKept({{of(forward, 0), of(input, 0), of(weight, 0)}}, kept)[0];
  EXPECT_EQ(at_once.ever, 11);
  EXPECT_EQ(at_once.going_back, 11);
  const MostBytes later =
      MostKept({{of(forward, 0), of(input, 0), of(forward, 1), of(weight, 0),
                 of(input, 1), of(weight, 1)}},
               kept)[0];
  EXPECT_EQ(later.ever, 110 + 11);
  EXPECT_EQ(later.going_back, 11);
}

// M (F + B) + (P - 1) (F + B) / V.
TEST(TimeOrder, IsTheClosedFormOfInterleaved1f1b) {
  const PipelineShape shape = {
      .ranks = 4, .micro_batches = 8, .virtual_stages = 2};
  EXPECT_EQ(EndOf(TimesOf("interleaved_1f1b", shape)), 2 * 3 * 8 + 3 * 3);
}

TEST(TimeOrder, AHandoverIsWaitedForOnOtherRanksOnly) {
  const ComputeOrder order = FindPipeline("1f1b")
                                 .value()
                                 .order({.ranks = 2, .micro_batches = 1})
                                 .value();
  const std::vector<StageSeconds> stages(2, kStage);
  EXPECT_EQ(EndOf(TimeOrder(order, stages, 0.5)),
            EndOf(TimeOrder(order, stages, 0)) + 2 * 0.5);
}

}  // namespace
}  // namespace troupe
