#include "clients/gantt/critical_path.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "scheduler/passes/lanes.h"
#include "tests/clients/gantt/made_pipeline.h"
#include "tests/clients/gantt/sample_timeline.h"

namespace troupe {
namespace {

constexpr int64_t kMs = 1'000'000;

std::vector<std::string> WordsOf(const std::vector<PlacedSpan>& spans,
                                 const CriticalPath& path) {
  std::vector<std::string> words;
  for (const PathPiece& piece : path.pieces) {
    words.push_back(SpanWords(*spans[piece.span].span));
  }
  return words;
}

TEST(CriticalPath, GoesThroughTheRankThatCameLast) {
  const Timeline timeline = SampleTimeline(/*predicted=*/false);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const CriticalPath path = FindCriticalPath(spans);
  EXPECT_EQ(WordsOf(spans, path),
            (std::vector<std::string>{"LOAD_BATCH micro-batch 0",
                                      "FORWARD unit 0, micro-batch 0",
                                      "BACKWARD_INPUT unit 1, micro-batch 0",
                                      "BACKWARD_WEIGHT unit 1, micro-batch 0",
                                      "REDUCE_GRADS unit 1", "STEP unit 0"}));
  for (const PathPiece& piece : path.pieces) {
    EXPECT_EQ(spans[piece.last_to_come].rank, 1) << "it starts 10 ms late";
  }
  EXPECT_EQ(path.compute_ns, 64 * kMs);
  EXPECT_EQ(path.collective_ns, 20 * kMs);
  EXPECT_EQ(path.other_ns, 6 * kMs);
  EXPECT_EQ(path.waiting_ns, 0);
  EXPECT_EQ(path.start_ns, 10 * kMs);
  EXPECT_EQ(path.total_ns(), 90 * kMs);
}

TEST(CriticalPath, FollowsATransferToItsSender) {
  Timeline timeline;
  *timeline.mutable_lanes() = AllLanes();
  RankTimeline& sender = *timeline.add_ranks();
  AddSpan({Instruction::FORWARD, LaneNamed("COMPUTE"), 0, 0, 0, 10}, sender);
  AddSpan({Instruction::SEND, LaneNamed("ACTIVATIONS"), 0, 0, 10, 14}, sender);
  sender.mutable_spans(1)->set_peer(1);
  RankTimeline& receiver = *timeline.add_ranks();
  receiver.set_rank(1);
  AddSpan({Instruction::RECV, LaneNamed("ACTIVATIONS"), 0, 0, 0, 14}, receiver);
  receiver.mutable_spans(0)->set_peer(0);
  // What ended just before FORWARD began, but is of another micro-batch.
  AddSpan({Instruction::SEND, LaneNamed("GRADIENTS"), 0, 7, 2, 15}, receiver);
  AddSpan({Instruction::FORWARD, LaneNamed("COMPUTE"), 1, 0, 16, 30}, receiver);
  const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
  const CriticalPath path = FindCriticalPath(spans);
  ASSERT_EQ(path.pieces.size(), 3);
  EXPECT_EQ(path.pieces[1].start_ns, 10 * kMs) << "waiting is no transfer";
  EXPECT_EQ(spans[path.pieces[1].last_to_come].rank, 0);
  EXPECT_EQ(path.compute_ns, 24 * kMs);
  EXPECT_EQ(path.transfer_ns, 4 * kMs);
  EXPECT_EQ(path.waiting_ns, 2 * kMs);
}

// With nothing but passes, transfers and a step to wait for, what is on the
// path fills it.
TEST(CriticalPath, LeavesNoGapInPipelines) {
  for (const MadeOrder& order : {OneForwardOneBackward(4, 9), ZeroBubble(8, 32),
                                 Interleaved(4, 8), Asynchronous(4, 8)}) {
    for (const bool alternating : {false, true}) {
      const Timeline timeline = MakePipeline(
          order, {.jitter_ns = 70'000, .alternating = alternating});
      const std::vector<PlacedSpan> spans = PlaceSpans(timeline);
      const CriticalPath path = FindCriticalPath(spans);
      EXPECT_EQ(path.waiting_ns, 0);
      int64_t end_ns = 0;
      for (const PlacedSpan& placed : spans) {
        end_ns = std::max(end_ns, placed.end_ns);
      }
      EXPECT_EQ(path.start_ns + path.total_ns(), end_ns);
      EXPECT_EQ(path.pieces.front().start_ns, 0);
      for (size_t i = 1; i < path.pieces.size(); ++i) {
        EXPECT_EQ(path.pieces[i].start_ns, path.pieces[i - 1].end_ns);
      }
    }
  }
}

// GPipe-like bound: the first rank's forwards down, the last one's passes, the
// backwards up.
TEST(CriticalPath, IsThePapersBoundWhereAllPassesAreAlike) {
  const int ranks = 4;
  const int micro_batches = 8;
  const Timeline timeline = MakePipeline(
      OneForwardOneBackward(ranks, micro_batches), {.units_per_stage = 1,
                                                    .pass_ns = kMs,
                                                    .transfer_ns = 0,
                                                    .alternating = true});
  const CriticalPath path = FindCriticalPath(PlaceSpans(timeline));
  const int64_t step_ns = kMs / 4;
  EXPECT_EQ(path.compute_ns, 3 * kMs * (micro_batches + ranks - 1) + step_ns);
}

TEST(CriticalPath, OfNothingIsEmpty) {
  EXPECT_TRUE(FindCriticalPath({}).pieces.empty());
  EXPECT_EQ(FindCriticalPath({}).total_ns(), 0);
}

}  // namespace
}  // namespace troupe
