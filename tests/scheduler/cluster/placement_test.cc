#include "scheduler/cluster/placement.h"

#include <algorithm>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

using Names = std::vector<std::string>;

class PlacementTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& host) {
    ASSERT_TRUE(table_.Add(RegisterOf(name, host), absl::UnixEpoch()).ok());
  }
  Names Place(int count) {
    Names names;
    for (const Worker* worker : PlaceRanks(table_.Idle(), count)) {
      names.push_back(worker->name());
    }
    return names;
  }
  WorkerTable table_{Limits{}};
};

TEST_F(PlacementTest, RanksFollowTheNames) {
  for (const char* name : {"w10", "w2", "w1", "w0"}) Add(name, "h");
  EXPECT_EQ(Place(4), (Names{"w0", "w1", "w2", "w10"}));
}

TEST_F(PlacementTest, TheTightestHostThatIsLargeEnough) {
  for (int i = 0; i < 4; ++i) Add(absl::StrCat("big", i), "big");
  for (int i = 0; i < 2; ++i) Add(absl::StrCat("mid", i), "mid");
  Add("small", "small");
  EXPECT_EQ(Place(1), (Names{"small"}));
  EXPECT_EQ(Place(2), (Names{"mid0", "mid1"}));
  EXPECT_EQ(Place(3), (Names{"big0", "big1", "big2"}));
}

TEST_F(PlacementTest, SpreadsOverFewHostsOtherwise) {
  Add("x0", "x");
  for (int i = 0; i < 3; ++i) Add(absl::StrCat("y", i), "y");
  Add("z0", "z");
  Add("z1", "z");
  EXPECT_EQ(Place(5), (Names{"y0", "y1", "y2", "z0", "z1"}));
  EXPECT_EQ(Place(6).size(), 6u);
}

TEST_F(PlacementTest, HostsThatAreNeededHaveEvenShares) {
  for (const char* host : {"a", "b", "c"}) {
    for (int i = 0; i < 6; ++i) Add(absl::StrCat(host, i), host);
  }
  EXPECT_EQ(Place(8), (Names{"a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"}));
  EXPECT_EQ(Place(9).at(4), "a4") << "the first has what is left over";
  EXPECT_EQ(Place(9).at(5), "b0");
  EXPECT_EQ(Place(12).at(6), "b0");
  EXPECT_EQ(Place(13).at(5), "b0") << "of three hosts, five, four and four";
  EXPECT_EQ(Place(13).at(9), "c0");
  EXPECT_EQ(Place(18).size(), 18u);
}

TEST_F(PlacementTest, ASmallHostHasWhatItCan) {
  for (int i = 0; i < 6; ++i) Add(absl::StrCat("big", i), "big");
  for (int i = 0; i < 2; ++i) Add(absl::StrCat("small", i), "small");
  EXPECT_EQ(Place(7), (Names{"big0", "big1", "big2", "big3", "big4", "small0",
                             "small1"}));
}

TEST(NaturalLess, IsAStrictOrder) {
  const Names names = {"",    "a",  "a0",  "a00",  "a1",  "a01",
                       "a10", "a2", "a2b", "a10b", "b",   "1",
                       "01",  "10", "2",   "2-10", "2-9", "a-"};
  for (const auto& a : names) {
    EXPECT_FALSE(NaturalLess(a, a));
    for (const auto& b : names) {
      if (a != b) {
        EXPECT_NE(NaturalLess(a, b), NaturalLess(b, a)) << a << " " << b;
      }
      for (const auto& c : names) {
        if (NaturalLess(a, b) && NaturalLess(b, c)) {
          EXPECT_TRUE(NaturalLess(a, c)) << a << " " << b << " " << c;
        }
      }
    }
  }
  EXPECT_TRUE(NaturalLess("a2", "a10"));
  EXPECT_TRUE(NaturalLess("2-9", "2-10"));
}

}  // namespace
}  // namespace troupe
