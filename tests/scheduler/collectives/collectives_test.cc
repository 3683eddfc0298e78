#include "scheduler/collectives/collectives.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "proto/plan/way_bytes.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {
namespace {

constexpr Collective kCollectives[] = {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER,
                                       BROADCAST, ALL_TO_ALL};

// Of rows that are for all collectives.
bool MayLackSteps(absl::string_view row, Collective collective) {
  if (row == "halving") return collective == BROADCAST;
  return row == "tree" && collective != ALL_REDUCE && collective != BROADCAST;
}

absl::StatusOr<LaidWay> Laid(absl::string_view row,
                             const std::vector<int>& hosts,
                             Collective collective = ALL_REDUCE) {
  return FindCollectiveRow(row)->lay(
      {.hosts = hosts, .collective = collective, .bytes = 1 << 20});
}

Group GroupOf(const LaidWay& way, Collective collective, int pieces) {
  Group group;
  group.set_name("g");
  group.mutable_levels()->Add(way.levels.begin(), way.levels.end());
  Group::Way& added = *group.add_ways();
  added.set_collective(collective);
  added.mutable_steps()->Add(way.steps.begin(), way.steps.end());
  if (pieces > 1) added.set_pieces(pieces);
  return group;
}

// "2 by 1, 3 by 2: REDUCE_SCATTER 0, ALL_REDUCE 1, ALL_GATHER 0".
std::string Text(const LaidWay& way) {
  return absl::StrCat(
      absl::StrJoin(way.levels, ", ",
                    [](std::string* out, const Group::Level& level) {
                      absl::StrAppend(out, level.size(), " by ",
                                      level.stride());
                    }),
      ": ",
      absl::StrJoin(way.steps, ", ",
                    [](std::string* out, const Group::Step& step) {
                      absl::StrAppend(out, Collective_Name(step.collective()),
                                      " ", step.level());
                    }));
}

TEST(CollectiveRows, EveryRowArrivesAtTheResult) {
  for (const CollectiveRow& row : CollectiveRows()) {
    for (const Collective collective : kCollectives) {
      for (int on_host = 2; on_host <= 4; ++on_host) {
        for (int hosts = 2; hosts <= 5; ++hosts) {
          for (const bool interleaved : {false, true}) {
            std::vector<int> host_of;
            for (int m = 0; m < on_host * hosts; ++m) {
              host_of.push_back(interleaved ? m % hosts : m / on_host);
            }
            const auto way = Laid(row.name, host_of, collective);
            if (MayLackSteps(row.name, collective)) {
              EXPECT_TRUE(absl::IsFailedPrecondition(way.status()))
                  << way.status();
              continue;
            }
            ASSERT_TRUE(way.ok()) << row.name << way.status();
            ASSERT_FALSE(way->pieces.empty()) << row.name;
            for (const int pieces : way->pieces) {
              const absl::Status proven =
                  CheckWays(GroupOf(*way, collective, pieces), on_host * hosts);
              EXPECT_TRUE(proven.ok()) << row.name << proven;
            }
          }
        }
      }
    }
  }
}

TEST(CollectiveRows, FlatIsOneCommunicator) {
  const auto way = Laid("flat", {0, 0, 1});
  ASSERT_TRUE(way.ok());
  EXPECT_TRUE(way->levels.empty() && way->steps.empty());
}

TEST(CollectiveRows, TwoLevelGoesWithinHostsFirst) {
  EXPECT_EQ(Text(*Laid("two_level", {7, 7, 3, 3, 5, 5})),
            "2 by 1, 3 by 2: REDUCE_SCATTER 0, ALL_REDUCE 1, ALL_GATHER 0");
  EXPECT_EQ(Text(*Laid("two_level", {0, 1, 2, 0, 1, 2}, REDUCE_SCATTER)),
            "2 by 3, 3 by 1: REDUCE_SCATTER 0, REDUCE_SCATTER 1");
  EXPECT_EQ(Text(*Laid("two_level", {0, 0, 1, 1}, ALL_GATHER)),
            "2 by 1, 2 by 2: ALL_GATHER 1, ALL_GATHER 0");
  EXPECT_EQ(Text(*Laid("two_level", {0, 0, 1, 1}, BROADCAST)),
            "2 by 1, 2 by 2: BROADCAST 1, BROADCAST 0");
  EXPECT_EQ(Text(*Laid("two_level", {0, 0, 1, 1}, ALL_TO_ALL)),
            "2 by 1, 2 by 2: ALL_TO_ALL 0, ALL_TO_ALL 1");
}

TEST(CollectiveRows, HalvingGoesOverPrimeFactors) {
  EXPECT_EQ(Text(*Laid("halving", {0, 1, 2, 3})),
            "2 by 1, 2 by 2: REDUCE_SCATTER 0, ALL_REDUCE 1, ALL_GATHER 0");
  EXPECT_EQ(Text(*Laid("halving", {0, 1, 2, 3, 4, 5}, REDUCE_SCATTER)),
            "2 by 1, 3 by 2: REDUCE_SCATTER 0, REDUCE_SCATTER 1");
  // Within hosts at once, wherever their members are in the group.
  EXPECT_EQ(Text(*Laid("halving", {0, 0, 1, 1, 2, 2, 3, 3}, ALL_GATHER)),
            "2 by 1, 2 by 2, 2 by 4: ALL_GATHER 2, ALL_GATHER 1, ALL_GATHER 0");
  EXPECT_EQ(Text(*Laid("halving", {0, 1, 2, 3, 0, 1, 2, 3}, ALL_TO_ALL)),
            "2 by 4, 2 by 1, 2 by 2: ALL_TO_ALL 0, ALL_TO_ALL 1, ALL_TO_ALL 2");
  EXPECT_EQ(Text(*Laid("halving", {0, 0, 0, 0, 1, 1, 1, 1}, ALL_GATHER)),
            "4 by 1, 2 by 4: ALL_GATHER 1, ALL_GATHER 0");
  EXPECT_EQ(Text(*Laid("halving", {0, 0, 0, 1, 1, 1}, ALL_GATHER)),
            "3 by 1, 2 by 3: ALL_GATHER 1, ALL_GATHER 0");
  // Hosts with unequal numbers: as they come in the group.
  EXPECT_EQ(Text(*Laid("halving", {0, 0, 0, 1}, ALL_GATHER)),
            "2 by 1, 2 by 2: ALL_GATHER 1, ALL_GATHER 0");
  const auto named = Laid("halving", {0, 0, 1, 1, 2, 2, 3, 3});
  EXPECT_EQ(named->levels[0].name(), "within hosts");
  EXPECT_TRUE(named->levels[0].in_order());
  EXPECT_EQ(named->levels[2].name(), "across hosts, 4 apart");
  // Of two hosts it is the levels of two_level.
  const auto two = Laid("halving", {0, 0, 1, 1});
  const auto levels = Laid("two_level", {0, 0, 1, 1});
  for (int l = 0; l < 2; ++l) {
    EXPECT_EQ(two->levels[l].SerializeAsString(),
              levels->levels[l].SerializeAsString());
  }
}

TEST(CollectiveRows, ATreeReducesAndTells) {
  EXPECT_EQ(Text(*Laid("tree", {0, 1, 2, 3, 4, 5, 6, 7})),
            "2 by 1, 2 by 2, 2 by 4: REDUCE 0, REDUCE 1, ALL_REDUCE 2, "
            "BROADCAST 1, BROADCAST 0");
  EXPECT_EQ(Text(*Laid("tree", {0, 1, 2, 3}, BROADCAST)),
            "2 by 1, 2 by 2: BROADCAST 1, BROADCAST 0");
}

TEST(CollectiveRows, PrimeNumbersOfMembersAreFlat) {
  for (const char* row : {"halving", "tree"}) {
    for (const std::vector<int>& hosts :
         {std::vector<int>{0, 1}, {0, 1, 2}, {0, 0, 1, 1, 2}}) {
      const auto way = Laid(row, hosts);
      ASSERT_TRUE(way.ok()) << way.status();
      EXPECT_TRUE(way->levels.empty() && way->steps.empty());
      EXPECT_TRUE(absl::StrContains(way->why_flat, "no product of smaller"))
          << way->why_flat;
    }
    EXPECT_TRUE(absl::StrContains(Laid(row, {0, 0, 0, 0}).status().message(),
                                  "on one host"));
    EXPECT_TRUE(absl::IsFailedPrecondition(Laid(row, {}).status()));
  }
}

// Of any number of members, each on a host of its own or not.
TEST(CollectiveRows, HalvingAndTreesArriveForAllSizes) {
  for (const char* row : {"halving", "tree"}) {
    for (const Collective collective : kCollectives) {
      if (MayLackSteps(row, collective)) continue;
      for (int members = 2; members <= 64; ++members) {
        std::vector<int> hosts(members);
        for (int m = 0; m < members; ++m) hosts[m] = m * m % 7;
        const auto way = Laid(row, hosts, collective);
        ASSERT_TRUE(way.ok()) << way.status();
        const absl::Status proven =
            CheckWays(GroupOf(*way, collective, 1), members);
        EXPECT_TRUE(proven.ok()) << proven;
      }
    }
  }
}

TEST(CollectiveRows, BlueConnectIsTwoLevelsInPieces) {
  for (const Collective collective : kCollectives) {
    const auto pieces = Laid("blueconnect", {0, 0, 1, 1, 2, 2}, collective);
    const auto whole = Laid("two_level", {0, 0, 1, 1, 2, 2}, collective);
    ASSERT_TRUE(pieces.ok() && whole.ok());
    EXPECT_EQ(Text(*pieces), Text(*whole));
    EXPECT_EQ(whole->pieces, std::vector<int>{1});
    EXPECT_EQ(pieces->pieces.front(), 1) << "of a few bytes";
    EXPECT_GT(pieces->pieces.back(), 8);
  }
}

void ExpectWhyNot(const std::vector<int>& hosts, const std::string& why,
                  Collective collective = ALL_REDUCE) {
  for (const char* row : {"two_level", "blueconnect"}) {
    const auto way = Laid(row, hosts, collective);
    ASSERT_TRUE(absl::IsFailedPrecondition(way.status())) << way.status();
    EXPECT_TRUE(absl::StrContains(way.status().message(), why)) << way.status();
  }
}

TEST(CollectiveRows, LevelsWantAsManyMembersOnEachHost) {
  ExpectWhyNot({0, 0, 0, 1}, "some hosts have 3 and others 1");
  ExpectWhyNot({0, 0, 0}, "on one host");
  ExpectWhyNot({0}, "on one host");
  ExpectWhyNot({}, "on one host");
  ExpectWhyNot({0, 1, 1, 0}, "uneven distances");
  ExpectWhyNot({0, 0, 1, 1, 0, 0, 1, 1}, "uneven distances");
  ExpectWhyNot({0, 0, 1, 1}, "straight from member to member", SHIFT);
}

TEST(CollectiveRows, TwoLevelIsFlatWithAMemberAHost) {
  const auto way = Laid("two_level", {0, 1, 2});
  ASSERT_TRUE(way.ok()) << way.status();
  EXPECT_TRUE(way->levels.empty() && way->steps.empty());
  EXPECT_EQ(way->why_flat, "each of its members has a host to itself");
}

TEST(CollectiveRows, NamesAreRefusedWithThoseThereAre) {
  const absl::Status unknown = FindCollectiveRow("ring").status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_TRUE(absl::StrContains(unknown.message(), "\"ring\"")) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown.message(),
                                "flat, two_level, blueconnect, halving, tree"))
      << unknown;
}

// Any factorisation: what a row over more levels lays is proven alike.
TEST(CollectiveRows, StepsOverAnyLevelsArrive) {
  for (const Collective collective : kCollectives) {
    Group group;
    group.set_name("g");
    int members = 1;
    for (int levels = 1; levels <= 5; ++levels) {
      Group::Level& level = *group.add_levels();
      level.set_size(1 + levels);
      level.set_stride(members);
      members *= level.size();
      group.clear_ways();
      Group::Way& way = *group.add_ways();
      way.set_collective(collective);
      const auto steps = StepsOver(collective, levels);
      ASSERT_TRUE(steps.ok());
      way.mutable_steps()->Add(steps->begin(), steps->end());
      const absl::Status proven = CheckWays(group, members);
      EXPECT_TRUE(proven.ok()) << proven;
      if (collective == ALL_TO_ALL) continue;  // each level sends it again
      int64_t sent = 0;
      for (const StepBytes& step :
           BytesOfSteps(group, way, members, {.elements = members})) {
        sent += step.sent;
      }
      const int64_t passes = collective == ALL_REDUCE ? 2 : 1;
      EXPECT_EQ(sent, passes * (members - 1) * 4 * members)
          << "as much as one ring";
    }
  }
}

}  // namespace
}  // namespace troupe
