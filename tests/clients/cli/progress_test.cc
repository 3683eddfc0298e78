#include "clients/cli/progress.h"

#include <signal.h>
#include <unistd.h>

#include <sstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Progress, IsSilentWhereNobodyLooks) {
  std::ostringstream out;
  std::ostringstream err;
  Interrupt interrupt;
  Console console = {.out = out, .err = err, .terminal = false};
  {
    Progress progress(console, interrupt, "importing");
    EXPECT_TRUE(progress.Show(1, 2).ok());
  }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, WhatTakesNoTimeShowsNone) {
  std::ostringstream out;
  std::ostringstream err;
  Interrupt interrupt;
  Console console = {.out = out, .err = err, .terminal = true};
  {
    Progress progress(console, interrupt, "importing");
    EXPECT_TRUE(progress.Show(2, 2).ok());
  }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, EndsWithAnInterrupt) {
  std::ostringstream out;
  Interrupt interrupt;
  Console console = {.out = out, .err = out};
  Progress progress(console, interrupt, "importing");
  EXPECT_TRUE(progress.Show(1, 2).ok());
  kill(getpid(), SIGINT);
  EXPECT_TRUE(absl::IsCancelled(progress.Show(1, 2)));
  EXPECT_TRUE(absl::IsCancelled(progress.Show(2, 2)));
}

}  // namespace
}  // namespace troupe
