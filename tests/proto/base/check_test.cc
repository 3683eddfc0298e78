#include "proto/base/check.h"

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Check, PassesQuietly) {
  CHECK(true) << "not evaluated";
  CHECK_EQ(2, 2);
  CHECK_OK(absl::OkStatus());
}

TEST(CheckDeathTest, SaysWhereWhatAndWhy) {
  EXPECT_DEATH(CHECK(1 == 2) << "why", "check_test.cc:.*1 == 2.*why");
  EXPECT_DEATH(CHECK_LT(5, 3), "5 < 3.*5 vs. 3");
  EXPECT_DEATH(CHECK_OK(absl::NotFoundError("gone")), "gone");
}

}  // namespace
}  // namespace troupe
