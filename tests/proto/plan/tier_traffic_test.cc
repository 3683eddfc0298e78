#include "proto/plan/tier_traffic.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

struct Times {
  int begin;
  int end;
};

// A program of moves and work, and when each of its instructions ran, in
// seconds. Buffer 0 is on the device, 1 in the host tier, 2 in the nvme tier.
struct MadeRun {
  // Of each tier in order: bytes up and down, seconds, seconds waited.
  struct Expected {
    Tier tier;
    int64_t in;
    int64_t out;
    double seconds;
    double waited;
  };

  MadeRun(const std::string& text, const std::vector<Times>& times)
      : program(*ParseProgram(text)) {
    for (const Tier tier : {DEVICE, HOST, NVME}) {
      Buffer& buffer = *program.add_buffers();
      buffer.set_tier(tier);
      buffer.set_bytes(5000);
    }
    for (int i = 0; i < program.instructions_size(); ++i) {
      Span& span = *timeline.add_spans();
      span.set_instruction(i);
      span.set_start_ns(int64_t{1'000'000'000} * times.at(i).begin);
      span.set_end_ns(int64_t{1'000'000'000} * times.at(i).end);
    }
  }

  void Expect(const std::vector<Expected>& expected) const {
    const std::vector<TierTraffic> traffic =
        TrafficOf(program, AllLanes(), timeline);
    ASSERT_EQ(traffic.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(traffic[i].tier(), expected[i].tier);
      EXPECT_EQ(traffic[i].bytes_in(), expected[i].in);
      EXPECT_EQ(traffic[i].bytes_out(), expected[i].out);
      EXPECT_DOUBLE_EQ(traffic[i].seconds(), expected[i].seconds);
      EXPECT_DOUBLE_EQ(traffic[i].waited_seconds(), expected[i].waited);
    }
  }

  Program program;
  RankTimeline timeline;
};

TEST(TierTraffic, NothingMovesInMostPrograms) {
  const MadeRun run("F u0 m0\nI u0 m0 ^0", {{0, 1}, {1, 2}});
  EXPECT_FALSE(MovesBetweenTiers(run.program));
  run.Expect({});
}

// Whole blocks of the disk count.
TEST(TierTraffic, CountsBytesEachWay) {
  const MadeRun run(
      "P u0 from<1 to>0\nP u1 @NVME_READS from<2 to>1\n"
      "E u0 @NVME_WRITES from<1 to>2\nF u0 m0",
      {{0, 1}, {0, 2}, {0, 4}, {0, 9}});
  EXPECT_TRUE(MovesBetweenTiers(run.program));
  run.Expect({{HOST, 5000, 0, 1, 0}, {NVME, 8192, 8192, 6, 0}});
}

TEST(TierTraffic, AWaitBeginsWhenAllElseIsThere) {
  // The forward pass could have begun at 3, when the one before it ended.
  const MadeRun run("F u0 m0\nP u1 from<1 to>0\nF u1 m0 ^1",
                    {{0, 3}, {0, 5}, {5, 6}});
  run.Expect({{HOST, 5000, 0, 5, 2}});
}

TEST(TierTraffic, OfMovesInARowEachTierHasItsPart) {
  // From the disk until 4, and on to the device until 6; needed at 1.
  const MadeRun run(
      "F u0 m0\nP u1 @NVME_READS from<2 to>1\n"
      "P u1 from<1 to>0 ^1\nF u1 m0 ^2",
      {{0, 1}, {0, 4}, {4, 6}, {6, 7}});
  run.Expect({{HOST, 5000, 0, 2, 2}, {NVME, 8192, 0, 4, 3}});
}

TEST(TierTraffic, TheEndWaitsForWhatNobodyElseDoes) {
  const MadeRun run("F u0 m0\nE u0 from<0 to>1 ^0", {{0, 1}, {1, 4}});
  run.Expect({{HOST, 0, 5000, 3, 3}});
}

TEST(TierTraffic, NobodyWaitsWhileAnotherLaneComputes) {
  // The optimizer, on the host's lane, waits from 0 to 4; the device computes
  // until 3.
  const MadeRun run("F u0 m0\nP u1 @NVME_READS from<2 to>1\nO u1 @OPTIMIZER ^1",
                    {{0, 3}, {0, 4}, {4, 5}});
  run.Expect({{NVME, 8192, 0, 4, 1}});
}

TEST(TierTraffic, OfAStepHasTheBytesOfAllRanksAndTheLongestTimes) {
  google::protobuf::RepeatedPtrField<TierTraffic> sum;
  TierTraffic one;
  one.set_tier(NVME);
  one.set_bytes_in(10);
  one.set_bytes_out(20);
  one.set_seconds(3);
  one.set_waited_seconds(0.5);
  TierTraffic other = one;
  other.set_seconds(2);
  other.set_waited_seconds(1);
  TierTraffic host = one;
  host.set_tier(HOST);
  for (const TierTraffic& traffic : {one, other, host}) {
    AddTraffic(traffic, sum);
  }
  ASSERT_EQ(sum.size(), 2);
  EXPECT_EQ(sum[0].bytes_in(), 20);
  EXPECT_EQ(sum[0].bytes_out(), 40);
  EXPECT_EQ(sum[0].seconds(), 3);
  EXPECT_EQ(sum[0].waited_seconds(), 1);
  EXPECT_EQ(sum[1].tier(), HOST);
  EXPECT_EQ(sum[1].bytes_in(), 10);
  // So is what is predicted.
  Prediction prediction;
  *prediction.add_ranks()->add_tiers() = one;
  RankPrediction& second = *prediction.add_ranks();
  *second.add_tiers() = other;
  *second.add_tiers() = host;
  const auto predicted = PredictedTraffic(prediction);
  ASSERT_EQ(predicted.size(), 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(predicted[i].ShortDebugString(), sum[i].ShortDebugString());
  }
}

}  // namespace
}  // namespace troupe
