#include "clients/gantt/placed_spans.h"

#include <map>

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

constexpr int64_t kMs = 1'000'000;

const PlacedSpan& Find(const std::vector<PlacedSpan>& spans, int rank,
                       Instruction::Kind kind) {
  for (const PlacedSpan& placed : spans) {
    if (placed.rank == rank && placed.span->kind() == kind) return placed;
  }
  ADD_FAILURE() << "no such span";
  return spans[0];
}

TEST(PlacedSpans, CollectivesRunOnceTheLastMemberHasCome) {
  const Timeline timeline = SampleTimeline(/*predicted=*/false);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const auto& early = Find(spans, 0, Instruction::REDUCE_GRADS);
  const auto& late = Find(spans, 1, Instruction::REDUCE_GRADS);
  EXPECT_EQ(early.start_ns, 60 * kMs);
  EXPECT_EQ(early.met_ns, 70 * kMs) << "rank 1 starts 10 ms late";
  EXPECT_EQ(late.start_ns, 70 * kMs);
  EXPECT_EQ(late.met_ns, 70 * kMs);
  EXPECT_GE(early.meeting, 0);
  EXPECT_EQ(early.meeting, late.meeting);
  const auto& forward = Find(spans, 1, Instruction::FORWARD);
  EXPECT_EQ(forward.start_ns, 16 * kMs);
  EXPECT_EQ(forward.met_ns, forward.start_ns);
  EXPECT_EQ(forward.meeting, -1);
}

TEST(PlacedSpans, EverySendMeetsItsReceive) {
  const Timeline timeline = MakePipeline(Interleaved(4, 8), {});
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  std::map<int, std::vector<const PlacedSpan*>> transfers;
  for (const PlacedSpan& placed : spans) {
    if (placed.span->has_peer()) transfers[placed.meeting].push_back(&placed);
  }
  // 7 borders between 8 stages on 4 ranks, both ways.
  EXPECT_EQ(transfers.size(), 7 * 2 * 8);
  for (const auto& [meeting, members] : transfers) {
    ASSERT_EQ(members.size(), 2);
    EXPECT_NE(members[0]->span->kind(), members[1]->span->kind());
    EXPECT_EQ(members[0]->span->peer(), members[1]->rank);
    EXPECT_EQ(members[0]->span->lane(), members[1]->span->lane());
    EXPECT_EQ(members[0]->met_ns, members[1]->met_ns);
  }
}

TEST(PlacedSpans, RepeatedCollectivesMeetInTheirOrder) {
  Timeline timeline;
  for (int r = 0; r < 2; ++r) {
    RankTimeline& rank = *timeline.add_ranks();
    rank.set_rank(r);
    AddSpan(
        {Instruction::REDUCE_SCALARS, LaneNamed("COLLECTIVE"), -1, -1, 0, 10},
        rank);
    AddSpan({Instruction::REDUCE_SCALARS, LaneNamed("COLLECTIVE"), -1, -1,
             20 + r, 30},
            rank);
  }
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  EXPECT_EQ(spans[0].meeting, spans[2].meeting);
  EXPECT_EQ(spans[1].meeting, spans[3].meeting);
  EXPECT_NE(spans[0].meeting, spans[1].meeting);
  EXPECT_EQ(spans[1].met_ns, 21 * kMs);
}

TEST(PlacedSpans, WhoIsNotThereIsNotWaitedFor) {
  Timeline timeline;
  RankTimeline& rank = *timeline.add_ranks();
  AddSpan({Instruction::SEND, LaneNamed("ACTIVATIONS"), 1, 0, 5, 9}, rank);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  EXPECT_EQ(spans[0].meeting, -1);
  EXPECT_EQ(spans[0].met_ns, 5 * kMs);
}

TEST(PlacedSpans, ClocksThatDifferPlaceNothingOutsideItself) {
  Timeline timeline = SampleTimeline(/*predicted=*/false);
  timeline.mutable_ranks(0)->set_start_unix_ns(2'000'000'000);  // rank 1
  for (const PlacedSpan& placed : PlaceSpans(timeline)) {
    EXPECT_LE(placed.start_ns, placed.met_ns);
    EXPECT_LE(placed.met_ns, placed.end_ns);
  }
}

TEST(PlacedSpans, Words) {
  Span span;
  span.set_kind(Instruction::RECV);
  span.set_unit(3);
  span.set_micro_batch(1);
  span.set_peer(2);
  EXPECT_EQ(SpanWords(span), "RECV unit 3, micro-batch 1 from rank 2");
  span.set_kind(Instruction::SEND);
  EXPECT_EQ(SpanWords(span), "SEND unit 3, micro-batch 1 to rank 2");
  span.Clear();
  span.set_kind(Instruction::REDUCE_GRADS);
  span.set_unit(3);
  span.set_unit_count(2);
  EXPECT_EQ(SpanWords(span), "REDUCE_GRADS units 3-4");
}

}  // namespace
}  // namespace troupe
