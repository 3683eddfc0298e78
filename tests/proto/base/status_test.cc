#include "proto/base/status.h"

#include <memory>

#include "gtest/gtest.h"

namespace troupe {
namespace {

absl::StatusOr<std::unique_ptr<int>> Parse(int value) {
  if (value < 0) return absl::OutOfRangeError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Twice(int value) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> parsed, Parse(value));
  RETURN_IF_ERROR(absl::OkStatus());
  return *parsed * 2;
}

TEST(Status, MacrosHandOnValuesAndErrors) {
  EXPECT_EQ(*Twice(4), 8);
  EXPECT_EQ(Twice(-1).status(), absl::OutOfRangeError("negative"));
}

TEST(Status, AnnotateKeepsTheCode) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
  EXPECT_EQ(Annotate(absl::NotFoundError("b"), "a"),
            absl::NotFoundError("a: b"));
}

}  // namespace
}  // namespace troupe
