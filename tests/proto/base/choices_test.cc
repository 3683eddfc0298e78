#include "proto/base/choices.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Choices, OrListReadsAsASentence) {
  EXPECT_EQ(OrList({}), "");
  EXPECT_EQ(OrList({"a"}), "a");
  EXPECT_EQ(OrList({"a", "b"}), "a or b");
  EXPECT_EQ(OrList({"a", "b", "c"}), "a, b or c");
}

TEST(Choices, DivisorsNearWhatWasWanted) {
  EXPECT_EQ(DivisorsText(8, 3), "1, 2, 4 or 8");
  EXPECT_EQ(DivisorsText(1, 5), "1");
  EXPECT_EQ(DivisorsText(7, 2), "1 or 7");
  EXPECT_EQ(DivisorsText(360, 7), "3, 4, 5, 6, 8, 9 or 10");
}

}  // namespace
}  // namespace troupe
