#include "worker/collective/level_lanes.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {
namespace {

using PieceAndStep = std::pair<int64_t, int>;

Group::Way WayOver(Collective collective, int levels, int pieces) {
  Group::Way way;
  way.set_collective(collective);
  way.set_pieces(pieces);
  const auto steps = StepsOver(collective, levels);
  way.mutable_steps()->Add(steps->begin(), steps->end());
  return way;
}

std::vector<PieceAndStep> OrderOn(const LaneOrder& order, int lane) {
  std::vector<PieceAndStep> all;
  order.ForEach(lane, [&](int64_t piece, int step) {
    all.emplace_back(piece, step);
    return true;
  });
  return all;
}

// When each step ends, where step s takes seconds[s], and no lane begins a step
// before it has ended the one before, the piece's step before is done, and the
// piece may begin: as long as anything can. Empty: something never can.
std::vector<std::vector<double>> EndsOf(const LaneOrder& order,
                                        const std::vector<double>& seconds) {
  const auto steps = static_cast<int>(order.lane_of_step.size());
  std::vector<std::vector<double>> ends(order.pieces,
                                        std::vector<double>(steps, -1));
  std::vector<std::vector<PieceAndStep>> lanes;
  for (int lane = 0; lane < order.lanes(); ++lane) {
    lanes.push_back(OrderOn(order, lane));
  }
  std::vector<size_t> next(lanes.size());
  std::vector<double> free(lanes.size());
  bool moved = true;
  while (moved) {
    moved = false;
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if (next[lane] == lanes[lane].size()) continue;
      const auto [piece, step] = lanes[lane][next[lane]];
      double after = 0;
      if (step > 0) after = ends[piece][step - 1];
      if (step == 0 && piece >= order.at_once) {
        after = ends[piece - order.at_once][steps - 1];
      }
      if (after < 0) continue;
      free[lane] = std::max(free[lane], after) + seconds[step];
      ends[piece][step] = free[lane];
      ++next[lane];
      moved = true;
    }
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (next[lane] < lanes[lane].size()) return {};
  }
  return ends;
}

constexpr Collective kCollectives[] = {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER,
                                       BROADCAST};

TEST(LaneOrder, EachStepOfEachPieceIsExecutedOnceAndNothingWaitsForEver) {
  for (const Collective collective : kCollectives) {
    for (int levels = 1; levels <= 4; ++levels) {
      for (int pieces = 1; pieces <= 12; ++pieces) {
        const Group::Way way = WayOver(collective, levels, pieces);
        const LaneOrder order = OrderOf(way, pieces);
        std::vector<PieceAndStep> all;
        for (int lane = 0; lane < order.lanes(); ++lane) {
          for (const PieceAndStep& one : OrderOn(order, lane)) {
            all.push_back(one);
          }
        }
        std::sort(all.begin(), all.end());
        std::vector<PieceAndStep> expected;
        for (int64_t piece = 0; piece < pieces; ++piece) {
          for (int step = 0; step < way.steps_size(); ++step) {
            expected.emplace_back(piece, step);
          }
        }
        EXPECT_EQ(all, expected);
        EXPECT_EQ(order.lanes(), pieces == 1 ? 1 : levels);
        EXPECT_FALSE(
            EndsOf(order, std::vector<double>(way.steps_size(), 1)).empty());
      }
    }
  }
}

TEST(LaneOrder, WithoutPiecesOneStepFollowsTheOther) {
  const LaneOrder order = OrderOf(WayOver(ALL_REDUCE, 2, 0), 2);
  EXPECT_EQ(order.lanes(), 1);
  EXPECT_EQ(OrderOn(order, 0),
            (std::vector<PieceAndStep>{
                {0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}}));
}

// What the cost model says (scheduler/simulate/way_cost.cc): the busiest level
// is never idle, but while the first piece comes and the last one goes.
TEST(LaneOrder, TakesAsLongAsTheBusiestLevel) {
  constexpr int kPieces = 16;
  const Group::Way way = WayOver(ALL_REDUCE, 2, kPieces);
  const LaneOrder order = OrderOf(way, kPieces);
  for (const double across : {0.1, 0.5, 1.0, 2.0, 3.0, 8.0}) {
    const auto ends = EndsOf(order, {1, across, 1});
    ASSERT_FALSE(ends.empty());
    const double busiest = kPieces * std::max(across, 2.0);
    const double all = kPieces * (2 + across);
    const double predicted = busiest + (all - busiest) / kPieces;
    EXPECT_GE(ends.back().back(), busiest);
    EXPECT_NEAR(ends.back().back(), predicted, 1 + across) << across;
  }
}

TEST(LevelLanes, LevelsWorkAtOnce) {
  LevelLanes lanes(2);
  for (int run = 0; run < 3; ++run) {
    absl::Notification second;
    const absl::Status status = lanes.Run(
        OrderOf(WayOver(ALL_REDUCE, 2, 4), 4),
        [&](int64_t piece, int step) {
          if (piece == 1 && step == 0) second.Notify();
          if (piece == 0 && step == 1 &&
              !second.WaitForNotificationWithTimeout(absl::Seconds(60))) {
            return absl::DeadlineExceededError("the levels take turns");
          }
          return absl::OkStatus();
        },
        [](const absl::Status& failure) { return failure; });
    EXPECT_TRUE(status.ok()) << status;
  }
}

// The failing lane says what the error is and ends the wait of the other.
TEST(LevelLanes, AFailureEndsAllLanes) {
  // What fails in piece 1, and what then waits for a peer on the other lane.
  const std::pair<int, PieceAndStep> cases[] = {
      {0, {0, 1}}, {1, {2, 0}}, {2, {2, 1}}};
  for (const auto& [failing, waits] : cases) {
    LevelLanes lanes(2);
    absl::Notification waiting;
    absl::Notification ended;
    std::atomic<int> settled = 0;
    std::atomic<int> after = 0;
    const PieceAndStep fails(1, failing);
    const PieceAndStep wait = waits;
    const absl::Status status = lanes.Run(
        OrderOf(WayOver(ALL_REDUCE, 2, 8), 8),
        [&](int64_t piece, int step) {
          if (ended.HasBeenNotified()) ++after;
          const PieceAndStep at(piece, step);
          if (at == fails) {
            waiting.WaitForNotification();
            return absl::UnavailableError("gone");
          }
          if (at == wait) {
            waiting.Notify();
            ended.WaitForNotification();
            return absl::CancelledError("ended");
          }
          return absl::OkStatus();
        },
        [&](const absl::Status& failure) {
          ++settled;
          EXPECT_TRUE(absl::IsUnavailable(failure)) << failure;
          ended.Notify();
          return absl::DataLossError("settled");
        });
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_EQ(settled, 1);
    EXPECT_EQ(after, 0) << "a step began after the failure";
  }
}

}  // namespace
}  // namespace troupe
