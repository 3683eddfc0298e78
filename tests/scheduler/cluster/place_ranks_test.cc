#include "scheduler/cluster/place_ranks.h"

#include <algorithm>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {
namespace {

using Names = std::vector<std::string>;

class PlaceRanksTest : public testing::Test {
 protected:
  void Add(const std::string& name, const std::string& host) {
    ASSERT_TRUE(table_.Add(RegisterOf(name, host), absl::UnixEpoch()).ok());
  }
  Names Place(int count, const RanksTogether& together = {}) {
    Names names;
    for (const Worker* worker : PlaceRanks(table_.Idle(), count, together)) {
      names.push_back(worker->name());
    }
    return names;
  }
  // How many each host has, of the ranks in order.
  std::vector<int> Shares(int count, const RanksTogether& together) {
    std::vector<int> shares;
    std::string last;
    for (const Worker* worker : PlaceRanks(table_.Idle(), count, together)) {
      const std::string& host = worker->status.description().host();
      if (host != last) shares.push_back(0);
      last = host;
      ++shares.back();
    }
    return shares;
  }
  void AddHosts(const std::vector<int>& sizes) {
    for (size_t h = 0; h < sizes.size(); ++h) {
      for (int i = 0; i < sizes[h]; ++i) {
        Add(absl::StrCat("h", h, "-", i), absl::StrCat("h", h));
      }
    }
  }
  WorkerTable table_{Limits{}};
};

TEST_F(PlaceRanksTest, RanksFollowTheNames) {
  for (const char* name : {"w10", "w2", "w1", "w0"}) Add(name, "h");
  EXPECT_EQ(Place(4), (Names{"w0", "w1", "w2", "w10"}));
}

TEST_F(PlaceRanksTest, TheTightestHostThatIsLargeEnough) {
  for (int i = 0; i < 4; ++i) Add(absl::StrCat("big", i), "big");
  for (int i = 0; i < 2; ++i) Add(absl::StrCat("mid", i), "mid");
  Add("small", "small");
  EXPECT_EQ(Place(1), (Names{"small"}));
  EXPECT_EQ(Place(2), (Names{"mid0", "mid1"}));
  EXPECT_EQ(Place(3), (Names{"big0", "big1", "big2"}));
}

TEST_F(PlaceRanksTest, SpreadsOverFewHostsOtherwise) {
  Add("x0", "x");
  for (int i = 0; i < 3; ++i) Add(absl::StrCat("y", i), "y");
  Add("z0", "z");
  Add("z1", "z");
  EXPECT_EQ(Place(5), (Names{"y0", "y1", "y2", "z0", "z1"}));
  EXPECT_EQ(Place(6).size(), 6u);
}

TEST_F(PlaceRanksTest, HostsHaveEvenSharesWhereTheJobKeepsCopies) {
  for (const char* host : {"a", "b", "c"}) {
    for (int i = 0; i < 6; ++i) Add(absl::StrCat(host, i), host);
  }
  EXPECT_EQ(Place(8, {.keeps_copies = true}),
            (Names{"a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"}));
  EXPECT_EQ(Place(9, {.keeps_copies = true}).at(4), "a4")
      << "the first has what is left over";
  EXPECT_EQ(Place(9, {.keeps_copies = true}).at(5), "b0");
  EXPECT_EQ(Place(12, {.keeps_copies = true}).at(6), "b0");
  EXPECT_EQ(Place(13, {.keeps_copies = true}).at(5), "b0")
      << "of three hosts, five, four and four";
  EXPECT_EQ(Place(13, {.keeps_copies = true}).at(9), "c0");
  EXPECT_EQ(Place(18, {.keeps_copies = true}).size(), 18u);
}

TEST_F(PlaceRanksTest, ASmallHostHasWhatItCan) {
  for (int i = 0; i < 6; ++i) Add(absl::StrCat("big", i), "big");
  for (int i = 0; i < 2; ++i) Add(absl::StrCat("small", i), "small");
  EXPECT_EQ(
      Place(7, {.keeps_copies = true}),
      (Names{"big0", "big1", "big2", "big3", "big4", "small0", "small1"}));
}

TEST_F(PlaceRanksTest, OtherJobsFillTheLargestFirst) {
  AddHosts({8, 8});
  EXPECT_EQ(Shares(12, {}), (std::vector<int>{8, 4}));
}

// All-reduces within each layer do not cross the network.
TEST_F(PlaceRanksTest, NoGroupIsCut) {
  AddHosts({8, 8});
  EXPECT_EQ(Shares(12, {.groups = {4}}), (std::vector<int>{8, 4}));
  EXPECT_EQ(Shares(12, {.groups = {4}, .keeps_copies = true}),
            (std::vector<int>{8, 4}));
  EXPECT_EQ(Shares(12, {.groups = {2}, .keeps_copies = true}),
            (std::vector<int>{6, 6}));
  EXPECT_EQ(Shares(16, {.groups = {8}}), (std::vector<int>{8, 8}));
}

TEST_F(PlaceRanksTest, AGroupIsWorthAHostMore) {
  AddHosts({6, 6, 6, 3});
  EXPECT_EQ(Shares(12, {.groups = {4}}), (std::vector<int>{4, 4, 4}));
  EXPECT_EQ(Shares(12, {.groups = {3}}), (std::vector<int>{6, 6}));
}

TEST_F(PlaceRanksTest, WhereTheLargestGroupHasNoRoomTheNextHas) {
  AddHosts({6, 6, 6});
  EXPECT_EQ(Shares(16, {.groups = {8, 2}}), (std::vector<int>{6, 6, 4}));
  EXPECT_EQ(Shares(16, {.groups = {8, 4}}), (std::vector<int>{6, 6, 4}))
      << "there is no such place";
  EXPECT_EQ(Shares(10, {.groups = {4}}), (std::vector<int>{6, 4}));
}

TEST(RanksTogether, AreTheInnermostAxes) {
  JobSpec job;
  EXPECT_TRUE(RanksTogetherOf(job).groups.empty());
  EXPECT_FALSE(RanksTogetherOf(job).keeps_copies);
  ParallelismSpec& parallelism = *job.mutable_parallelism();
  parallelism.set_pipeline(2);
  parallelism.set_data(3);
  EXPECT_TRUE(RanksTogetherOf(job).groups.empty());
  parallelism.set_tensor(4);
  EXPECT_EQ(RanksTogetherOf(job).groups, (std::vector<int>{4}));
  parallelism.set_context(2);
  EXPECT_EQ(RanksTogetherOf(job).groups, (std::vector<int>{8, 4}));
  parallelism.set_context_method("ring");
  EXPECT_EQ(RanksTogetherOf(job).groups, (std::vector<int>{4}));
  parallelism.set_context_method("usp");
  parallelism.set_context(6);
  parallelism.set_ulysses_size(2);
  parallelism.set_tensor_method("2d");
  EXPECT_EQ(RanksTogetherOf(job).groups, (std::vector<int>{8, 4, 2}));
}

TEST(RanksTogether, KeepCopiesUnlessTheJobSaysNone) {
  JobSpec job;
  job.mutable_recovery();
  EXPECT_TRUE(RanksTogetherOf(job).keeps_copies);
  job.mutable_recovery()->set_copies(0);
  EXPECT_FALSE(RanksTogetherOf(job).keeps_copies);
  job.clear_recovery();
  job.mutable_elastic();
  EXPECT_TRUE(RanksTogetherOf(job).keeps_copies);
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
