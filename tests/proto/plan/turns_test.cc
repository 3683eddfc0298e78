// Whose each step is: what may come next in the list of events, and what
// follows from it.
#include "proto/plan/turns.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;

TurnEvent Claim(int by) { return {.kind = TurnEvent::kClaim, .by = by}; }
TurnEvent Deliver(int by) { return {.kind = TurnEvent::kDeliver, .by = by}; }

TEST(TurnEvent, IsText) {
  for (const TurnEvent& event :
       {Claim(0), Deliver(12),
        TurnEvent{.kind = TurnEvent::kAsk, .by = 3, .stop = true},
        TurnEvent{.kind = TurnEvent::kAsk, .stop = true, .save = true},
        TurnEvent{.kind = TurnEvent::kDeliver,
        .by = 1,
        .sums = std::string("\0:x\n", 4)}}) {
    const auto parsed = ParseTurnEvent(TextOf(event));
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(parsed->kind, event.kind);
    EXPECT_EQ(parsed->by, event.by);
    EXPECT_EQ(parsed->stop, event.stop);
    EXPECT_EQ(parsed->save, event.save);
    EXPECT_EQ(parsed->sums, event.sums);
  }
  for (const char* const text : {"", "c", "c:", "q1:", "c-1:", "d1", "cx:"}) {
    EXPECT_FALSE(ParseTurnEvent(text).ok()) << text;
  }
}

TEST(Turns, StepsAreClaimedAndDelivered) {
  StepTurns turns({.replicas = 2}, 5, 7);
  EXPECT_FALSE(turns.Allows(Deliver(0)));
  EXPECT_FALSE(turns.Allows(Claim(2)));
  EXPECT_TRUE(turns.Apply(Claim(1)).ok());
  EXPECT_FALSE(turns.Allows(Claim(1))) << "it has one";
  EXPECT_TRUE(turns.Apply(Claim(0)).ok());
  EXPECT_TRUE(turns.Apply(Deliver(0)).ok());
  EXPECT_TRUE(turns.Apply(Claim(0)).ok());
  EXPECT_EQ(turns.claimed(), 7);
  EXPECT_EQ(turns.delivered(), 5);
  EXPECT_TRUE(turns.Apply(Deliver(0)).ok());
  EXPECT_FALSE(turns.Allows(Claim(0))) << "none is left";
  EXPECT_FALSE(turns.over());
  EXPECT_TRUE(turns.Apply(Deliver(1)).ok());
  EXPECT_TRUE(turns.over());
  EXPECT_EQ(turns.ClaimOf(5).by, 1);
  EXPECT_EQ(turns.ClaimOf(6).by, 0);
  // The first update is of the second batch, the last of the first.
  EXPECT_EQ(turns.DeliveredIn(5).batch(), 6);
  EXPECT_EQ(turns.DeliveredIn(5).weights_step(), 4);
  EXPECT_EQ(turns.DeliveredIn(6).batch(), 7);
  EXPECT_EQ(turns.DeliveredIn(6).weights_step(), 5);
  EXPECT_EQ(turns.DeliveredIn(7).batch(), 5);
  EXPECT_EQ(turns.DeliveredIn(7).weights_step(), 4);
  EXPECT_EQ(turns.DeliveredIn(7).replica(), 1);
  const absl::Status late = turns.Apply(Deliver(1));
  EXPECT_EQ(late.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(late.message()), HasSubstr("event 6"));
}

TEST(Turns, ARequestEndsTheStepsAfterTheNextClaim) {
  StepTurns turns({.replicas = 2}, 1, 100);
  EXPECT_TRUE(turns.Apply(Claim(0)).ok());
  EXPECT_TRUE(
      turns.Apply({.kind = TurnEvent::kAsk, .by = 3, .save = true}).ok());
  EXPECT_EQ(turns.last(), 100);
  EXPECT_TRUE(turns.Apply(Claim(1)).ok());
  EXPECT_EQ(turns.last(), 2);
  EXPECT_FALSE(turns.ClaimOf(1).save);
  EXPECT_TRUE(turns.ClaimOf(2).save);
  EXPECT_FALSE(turns.ClaimOf(2).stop);
  EXPECT_FALSE(turns.Allows({.kind = TurnEvent::kAsk})) << "nobody would see";
}

// Whatever comes in whichever order: none begins a step while it has done more
// than `staleness` more than another, and some replica may always go on.
TEST(Turns, NoneIsTooFarAhead) {
  std::mt19937 random(1);
  for (const int staleness : {0, 1, 4}) {
    for (int trial = 0; trial < 200; ++trial) {
      const int replicas = 1 + static_cast<int>(random() % 5);
      const int64_t last = 1 + static_cast<int64_t>(random() % 60);
      StepTurns turns({.replicas = replicas, .staleness = staleness}, 1, last);
      while (!turns.over()) {
        std::vector<TurnEvent> may;
        for (int r = 0; r < replicas; ++r) {
          for (const TurnEvent& event : {Claim(r), Deliver(r)}) {
            if (turns.Allows(event)) may.push_back(event);
          }
        }
        ASSERT_FALSE(may.empty());
        // The first is fast.
        const TurnEvent& next =
            may[random() % 4 > 0 ? 0 : random() % may.size()];
        if (next.kind == TurnEvent::kClaim) {
          int64_t least = turns.done(0);
          for (int r = 1; r < replicas; ++r) {
            least = std::min(least, turns.done(r));
          }
          EXPECT_LE(turns.done(next.by) - least, staleness);
        }
        ASSERT_TRUE(turns.Apply(next).ok());
      }
    }
  }
}

// Of a seed exactly one event may come, and which one is random.
TEST(Turns, ASeedDrawsTheOrder) {
  std::vector<std::string> orders;
  for (const int64_t seed : {1, 1, 2}) {
    StepTurns turns({.replicas = 3, .staleness = 2, .order_seed = seed}, 1, 30);
    std::string& order = orders.emplace_back();
    while (!turns.over()) {
      std::vector<TurnEvent> may;
      for (int r = 0; r < 3; ++r) {
        for (const TurnEvent& event : {Claim(r), Deliver(r)}) {
          if (turns.Allows(event)) may.push_back(event);
        }
      }
      ASSERT_EQ(may.size(), 1u);
      order += TextOf(may[0]);
      ASSERT_TRUE(turns.Apply(may[0]).ok());
    }
  }
  EXPECT_EQ(orders[0], orders[1]);
  EXPECT_NE(orders[0], orders[2]);
}

TEST(MeetsAfter, WhereAllPrograms) {
  Plan plan;
  TrainingSpec& training = *plan.mutable_job()->mutable_training();
  training.set_steps(2000);
  EXPECT_EQ(MeetsAfter(plan, 1), kStepsBetweenMeetings);
  EXPECT_EQ(MeetsAfter(plan, kStepsBetweenMeetings + 1),
            2 * kStepsBetweenMeetings);
  training.set_validate_every(30);
  EXPECT_EQ(MeetsAfter(plan, 1), 30);
  EXPECT_EQ(MeetsAfter(plan, 31), 60);
  plan.mutable_job()->mutable_checkpoint()->set_every(50);
  EXPECT_EQ(MeetsAfter(plan, 31), 60);
  plan.mutable_job()->mutable_checkpoint()->set_directory("there");
  EXPECT_EQ(MeetsAfter(plan, 31), 50);
  training.set_stop_after(33);
  EXPECT_EQ(MeetsAfter(plan, 31), 33);
}

}  // namespace
}  // namespace troupe
