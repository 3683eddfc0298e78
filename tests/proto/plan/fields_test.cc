#include "proto/plan/fields.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Fields, ErrorsBeginWithThePath) {
  const absl::Status status = FieldError("a.b", "is wrong");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a.b: is wrong");
}

TEST(Fields, Present) {
  EXPECT_TRUE(CheckPresent({.present = true, .path = "x"}).ok());
  EXPECT_EQ(CheckPresent({.present = false, .path = "x", .meaning = "a count"})
                .message(),
            "x: is missing; give a count");
}

TEST(Fields, IntegersIncludeBothEnds) {
  EXPECT_TRUE(CheckInteger("x", 1, {.min = 1, .max = 3}).ok());
  EXPECT_TRUE(CheckInteger("x", 3, {.min = 1, .max = 3}).ok());
  EXPECT_FALSE(CheckInteger("x", 0, {.min = 1, .max = 3}).ok());
  EXPECT_EQ(CheckInteger("x", 4, {.min = 1, .max = 3}).message(),
            "x: 4 is out of range; use 1 to 3");
}

TEST(Fields, NumbersMayExcludeAnEnd) {
  const NumberRange fraction = {.min = 0, .max = 1, .max_open = true};
  EXPECT_TRUE(CheckNumber("x", 0, fraction).ok());
  EXPECT_TRUE(CheckNumber("x", 0.999, fraction).ok());
  EXPECT_EQ(CheckNumber("x", 1, fraction).message(),
            "x: 1 is out of range; use a number from 0 and below 1");
  const NumberRange positive = {.min = 0, .max = 5, .min_open = true};
  EXPECT_EQ(CheckNumber("x", 0, positive).message(),
            "x: 0 is out of range; use a number above 0 to 5");
}

TEST(Fields, NoRangeHasNanOrInfinity) {
  const NumberRange range = {.min = -1e300, .max = 1e300};
  EXPECT_FALSE(CheckNumber("x", std::nan(""), range).ok());
  EXPECT_FALSE(
      CheckNumber("x", std::numeric_limits<double>::infinity(), range).ok());
}

TEST(Fields, NamesSuggest) {
  const std::vector<std::string> names = {"adamw", "sgd"};
  EXPECT_TRUE(CheckName("x", "sgd", names).ok());
  EXPECT_EQ(CheckName("x", "adam", names).message(),
            "x: there is no \"adam\"; use adamw or sgd; did you mean "
            "\"adamw\"?");
  EXPECT_EQ(CheckName("x", "lion", names).message(),
            "x: there is no \"lion\"; use adamw or sgd");
}

}  // namespace
}  // namespace troupe
