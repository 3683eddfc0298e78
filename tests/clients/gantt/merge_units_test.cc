#include "clients/gantt/merge_units.h"

#include "gtest/gtest.h"
#include "tests/clients/gantt/made_pipeline.h"

namespace troupe {
namespace {

// Spans of one millisecond, one behind the other.
class Passes {
 public:
  Passes& Add(Instruction::Kind kind, int unit, int micro_batch) {
    Span& span = *rank_.add_spans();
    span.set_kind(kind);
    span.set_unit(unit);
    span.set_micro_batch(micro_batch);
    span.set_start_ns(now_);
    now_ += 1'000'000;
    span.set_end_ns(now_);
    return *this;
  }
  Passes& Wait(int64_t ns) {
    now_ += ns;
    return *this;
  }

  // Sizes of the bars.
  std::vector<size_t> Bars(const MergeOptions& options = {}) const {
    std::vector<PlacedSpan> spans;
    std::vector<int> lane;
    for (const Span& span : rank_.spans()) {
      lane.push_back(static_cast<int>(spans.size()));
      spans.push_back({.span = &span,
                       .start_ns = span.start_ns(),
                       .met_ns = span.start_ns(),
                       .end_ns = span.end_ns()});
    }
    std::vector<size_t> sizes;
    for (const auto& bar : MergeUnits(spans, lane, options)) {
      sizes.push_back(bar.size());
    }
    return sizes;
  }

 private:
  RankTimeline rank_;
  int64_t now_ = 0;
};

constexpr auto kF = Instruction::FORWARD;
constexpr auto kI = Instruction::BACKWARD_INPUT;
constexpr auto kW = Instruction::BACKWARD_WEIGHT;
using Sizes = std::vector<size_t>;

TEST(MergeUnits, PassesOverAStage) {
  Passes lane;
  lane.Add(kF, 0, 0).Add(kF, 1, 0).Add(kF, 0, 1).Add(kF, 1, 1);
  EXPECT_EQ(lane.Bars(), (Sizes{2, 2}));
  lane.Add(kI, 1, 1);
  EXPECT_EQ(lane.Bars(), (Sizes{2, 2, 1})) << "the same micro-batch";
}

TEST(MergeUnits, BackwardApartWhereItIsScheduledApart) {
  Passes lane;
  lane.Add(kI, 1, 0).Add(kI, 0, 0).Add(kW, 1, 0).Add(kW, 0, 0);
  EXPECT_EQ(lane.Bars(), (Sizes{2, 2}));
}

TEST(MergeUnits, BackwardInOneWhereItGoesFromUnitToUnit) {
  Passes lane;
  lane.Add(kI, 1, 0).Add(kW, 1, 0).Add(kI, 0, 0).Add(kW, 0, 0);
  EXPECT_EQ(lane.Bars(), (Sizes{4}));
  // Then everywhere on the lane.
  lane.Add(kF, 5, 0).Add(kI, 5, 0).Add(kW, 5, 0);
  EXPECT_EQ(lane.Bars(), (Sizes{4, 1, 2}));
}

TEST(MergeUnits, NotOverGapsNorStages) {
  Passes lane;
  lane.Add(kF, 0, 0).Wait(100).Add(kF, 1, 0).Add(kF, 2, 0);
  EXPECT_EQ(lane.Bars(), (Sizes{1, 2}));
  EXPECT_EQ(lane.Bars({.gap_ns_max = 100}), (Sizes{3}));
  EXPECT_EQ(lane.Bars({.gap_ns_max = 100, .stages = StagesOf(2, 2)}),
            (Sizes{2, 1}));
  Passes chunks;
  chunks.Add(kF, 1, 0).Add(kF, 8, 0);
  EXPECT_EQ(chunks.Bars(), (Sizes{1, 1})) << "units that do not follow";
}

TEST(MergeUnits, StepsAreOneAndTheRestStandsAlone) {
  Passes lane;
  lane.Add(Instruction::STEP, 0, 0).Add(Instruction::STEP, 9, 0);
  lane.Add(Instruction::SEND, 0, 0).Add(Instruction::SEND, 0, 0);
  EXPECT_EQ(lane.Bars(), (Sizes{2, 1, 1}));
}

}  // namespace
}  // namespace troupe
