#include "worker/rank/state_copies.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

KeptState After(int64_t step) {
  KeptState state;
  state.set_step(step);
  return state;
}

void Copy(int64_t step, StateCopies& copies) {
  copies.End(copies.Begin(step), After(step), /*of_peer=*/true);
}

TEST(StateCopies, OneIsWholeWhileTheOtherIsWritten) {
  StateCopies copies;
  EXPECT_TRUE(copies.Whole().empty());
  for (int64_t step = 0; step < 12; step += 3) {
    copies.Begin(step);
    EXPECT_EQ(copies.Find(step, false), -1);
    if (step > 0) {
      EXPECT_GE(copies.Find(step - 3, true), 0);
    }
    Copy(step, copies);
    EXPECT_GE(copies.Find(step, false), 0);
  }
  EXPECT_EQ(copies.Whole().size(), 2u);
}

// The next attempt comes to those steps again, on other ranks as well: what one
// has of the attempt before must not be put together with what others have of
// this one.
TEST(StateCopies, WhoGoesOnFromAStepKeepsNoneOfLaterOnes) {
  StateCopies copies;
  Copy(4, copies);
  Copy(6, copies);
  copies.DropAfter(4);
  EXPECT_GE(copies.Find(4, false), 0);
  EXPECT_EQ(copies.Find(6, false), -1);
  EXPECT_EQ(copies.Find(6, true), -1);
  Copy(4, copies);
  EXPECT_EQ(copies.Whole().size(), 2u) << "the one it came from is still there";
}

}  // namespace
}  // namespace troupe
