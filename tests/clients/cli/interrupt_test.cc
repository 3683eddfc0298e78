#include "clients/cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Interrupt, TurnsSignalsIntoAnAnswer) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    Interrupt interrupt;
    EXPECT_FALSE(interrupt.Arrived());
    ASSERT_EQ(kill(getpid(), signal), 0);
    EXPECT_TRUE(interrupt.Arrived());
    EXPECT_TRUE(interrupt.Arrived()) << "it stays said";
    ASSERT_EQ(kill(getpid(), signal), 0);
    interrupt.Forget();
    EXPECT_FALSE(interrupt.Arrived());
    ASSERT_EQ(kill(getpid(), signal), 0);
    EXPECT_TRUE(interrupt.Arrived()) << "another";
  }
}

TEST(Interrupt, SwallowsWhatNobodyAskedFor) {
  {
    Interrupt interrupt;
    ASSERT_EQ(kill(getpid(), SIGINT), 0);
  }
  // Still here: the signal did not end us when it was let through again.
  Interrupt next;
  EXPECT_FALSE(next.Arrived());
}

// As under nohup, and SIGINT in what a script starts with `&`.
TEST(Interrupt, WhatIsIgnoredStaysIgnored) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto before = ::signal(signal, SIG_IGN);
    {
      Interrupt interrupt;
      ASSERT_EQ(kill(getpid(), signal), 0);
      EXPECT_FALSE(interrupt.Arrived()) << signal;
    }
    ::signal(signal, before);
  }
}

TEST(InterruptDeathTest, SignalsEndUsAgainAfterwards) {
  EXPECT_EXIT(
      {
        { Interrupt interrupt; }
        kill(getpid(), SIGTERM);
        pause();
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace troupe
