#include "clients/cli/progress.h"

#include <sstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Progress, IsSilentWhereNobodyLooks) {
  std::ostringstream out;
  std::ostringstream err;
  Console console = {.out = out, .err = err, .terminal = false};
  {
    Progress progress(console, "importing");
    progress.Show(1, 2);
  }
  EXPECT_EQ(err.str(), "");
}

TEST(Progress, WhatTakesNoTimeShowsNone) {
  std::ostringstream out;
  std::ostringstream err;
  Console console = {.out = out, .err = err, .terminal = true};
  {
    Progress progress(console, "importing");
    progress.Show(2, 2);
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace troupe
