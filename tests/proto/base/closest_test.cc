#include "proto/base/closest.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

int Distance(absl::string_view one, absl::string_view other) {
  return EditDistance({.one = one, .other = other});
}

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(Distance("", ""), 0);
  EXPECT_EQ(Distance("abc", ""), 3);
  EXPECT_EQ(Distance("", "abc"), 3);
  EXPECT_EQ(Distance("kitten", "sitting"), 3);
  EXPECT_EQ(Distance("Adam", "adam"), 0);
}

TEST(EditDistance, SwapOfNeighboursIsOneEdit) {
  EXPECT_EQ(Distance("consine", "cosnine"), 1);
  EXPECT_EQ(Distance("adma", "adam"), 1);
}

TEST(ClosestName, SuggestsWhatIsNear) {
  const std::vector<std::string> names = {"cosine", "linear", "constant"};
  EXPECT_EQ(ClosestName("cosin", names), "cosine");
  EXPECT_EQ(ClosestName("LINAER", names), "linear");
  EXPECT_EQ(ClosestName("constnat", names), "constant");
}

TEST(ClosestName, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(ClosestName("polynomial", {"cosine", "wsd"}), "");
  EXPECT_EQ(ClosestName("xy", {"ab"}), "");
  EXPECT_EQ(ClosestName("anything", {}), "");
}

}  // namespace
}  // namespace troupe
