#include "proto/plan/ways.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/way_bytes.h"
#include "tests/proto/plan/made_ways.h"
#include "tests/proto/plan/way_execution.h"

namespace troupe {
namespace {

int MembersOf(const Group& group) {
  int64_t members = 1;
  for (const Group::Level& level : group.levels()) members *= level.size();
  return static_cast<int>(members);
}

// Whether both say the same, with every root; and of what is right the bytes.
// `members`: 0: as many as the levels have places.
bool Agrees(const Group& group, int members = 0) {
  const Group::Way& way = group.ways(0);
  if (members == 0) members = MembersOf(group);
  // Where blocks are packed, what goes in steps is even.
  const int elements = 3 * members + (PacksBlocks(way.collective()) ? 0 : 1);
  bool right = true;
  std::vector<int64_t> sent;
  if (way.collective() == ALL_TO_ALL) {
    BlockExchange exchange(group, way, members);
    right = exchange.Run();
    for (const int64_t blocks : exchange.sent()) sent.push_back(3 * blocks);
  } else {
    const int roots = way.collective() == BROADCAST ? members : 1;
    for (int root = 0; root < roots; ++root) {
      WayExecution execution(group, way, members, elements, root);
      right = right && execution.Run();
      sent = execution.sent();
    }
  }
  const absl::Status checked = CheckWays(group, members);
  EXPECT_EQ(checked.ok(), right) << checked << "\n" << group.DebugString();
  if (!right || !checked.ok()) return right;
  const auto bytes = BytesOfSteps(group, way, members,
                                  {.elements = elements, .element_bytes = 4});
  for (int s = 0; s < way.steps_size(); ++s) {
    EXPECT_EQ(bytes[s].sent, 4 * sent[s]) << s << group.DebugString();
  }
  return right;
}

// What a hostile message may say.
void ExpectRefused(const Group& group, int members, const std::string& why) {
  const absl::Status status = CheckWays(group, members);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "group data: ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), why)) << status;
}

// Every row of up to steps_max steps, of each collective and level.
int CountRight(Collective collective, const Group& levels, int steps_max,
               int members = 0) {
  constexpr Collective kSteps[] = {REDUCE_SCATTER, ALL_REDUCE, ALL_GATHER,
                                   BROADCAST,      REDUCE,     ALL_TO_ALL,
                                   SHIFT};
  constexpr int kKinds = static_cast<int>(std::size(kSteps));
  const int choices = kKinds * levels.levels_size();
  int right = 0;
  for (int steps = 1; steps <= steps_max; ++steps) {
    int rows = 1;
    for (int s = 0; s < steps; ++s) rows *= choices;
    for (int row = 0; row < rows; ++row) {
      std::vector<StepOn> list;
      for (int s = 0, rest = row; s < steps; ++s, rest /= choices) {
        list.push_back(
            {kSteps[rest % choices % kKinds], rest % choices / kKinds});
      }
      Group group = levels;
      AddWay(collective, list, group);
      right += Agrees(group, members) ? 1 : 0;
      if (testing::Test::HasFailure()) return right;
    }
  }
  return right;
}

TEST(Ways, ProvesWhatExecutionShowsOfEveryRowOfSteps) {
  const Group two = GroupWith({{2, 1}, {3, 2}});
  const Group interleaved = GroupWith({{2, 3}, {3, 1}});
  for (const Group& group : {two, interleaved}) {
    // Two all-reduces in either order, or one that is two steps, by shares or
    // over place 0, with the other before, between or behind these.
    EXPECT_EQ(CountRight(ALL_REDUCE, group, 3), 14);
    EXPECT_EQ(CountRight(REDUCE_SCATTER, group, 3), 2);
    EXPECT_EQ(CountRight(ALL_GATHER, group, 3), 2);
    EXPECT_EQ(CountRight(BROADCAST, group, 3), 2);
    EXPECT_EQ(CountRight(ALL_TO_ALL, group, 3), 2);
  }
  EXPECT_EQ(CountRight(ALL_REDUCE, GroupWith({{4, 1}}), 2), 3)
      << "all at once, a piece each, or the first for all";
}

// Levels of which some members are at the same places of both: a step over the
// second adds up summands a second time.
TEST(Ways, RefusesEveryRowOfStepsOverLevelsThatOverlap) {
  struct Overlap {
    std::vector<LevelSize> levels;
    int members;
  };
  const std::vector<Overlap> overlaps = {{{{4, 1}, {2, 2}}, 4},
                                         {{{4, 1}, {2, 1}}, 4},
                                         {{{2, 1}, {2, 1}}, 2},
                                         {{{2, 1}, {2, 1}}, 4},
                                         {{{2, 2}, {2, 2}}, 4}};
  for (const auto& [levels, members] : overlaps) {
    for (const Collective collective :
         {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL}) {
      std::vector<StepOn> both;
      for (const int level : {0, 1}) both.push_back({collective, level});
      Group group = GroupWith(levels);
      AddWay(collective, both, group);
      ExpectRefused(group, members, "no factors of");
      EXPECT_FALSE(Agrees(group, members));
      std::reverse(both.begin(), both.end());
      group.clear_ways();
      AddWay(collective, both, group);
      ExpectRefused(group, members, "no factors of");
      EXPECT_FALSE(Agrees(group, members));
    }
  }
}

TEST(Ways, ProvesThreeLevels) {
  Group group = GroupWith({{2, 1}, {2, 2}, {3, 4}});
  AddWay(ALL_REDUCE,
         {{REDUCE_SCATTER, 0},
          {REDUCE_SCATTER, 1},
          {ALL_REDUCE, 2},
          {ALL_GATHER, 1},
          {ALL_GATHER, 0}},
         group);
  EXPECT_TRUE(Agrees(group));
  group.mutable_ways(0)->mutable_steps()->SwapElements(3, 4);
  EXPECT_FALSE(Agrees(group)) << "the inner pieces come together first";
  group = GroupWith({{2, 1}, {2, 2}, {3, 4}});
  AddWay(REDUCE_SCATTER,
         {{REDUCE_SCATTER, 2}, {REDUCE_SCATTER, 0}, {REDUCE_SCATTER, 1}},
         group);
  EXPECT_TRUE(Agrees(group));
}

// A member that waits for a sum takes no part in what the others do with it: by
// shares on the level between, and whatever comes down first.
TEST(Ways, ProvesWhatGoesUpAndDownATree) {
  const std::vector<StepOn> right[] = {
      {{REDUCE, 0},
       {REDUCE, 1},
       {ALL_REDUCE, 2},
       {BROADCAST, 1},
       {BROADCAST, 0}},
      {{REDUCE, 0},
       {REDUCE, 1},
       {ALL_REDUCE, 2},
       {BROADCAST, 0},
       {BROADCAST, 1}},
      {{REDUCE, 0},
       {REDUCE_SCATTER, 1},
       {ALL_REDUCE, 2},
       {ALL_GATHER, 1},
       {BROADCAST, 0}},
      {{REDUCE, 0},
       {REDUCE_SCATTER, 1},
       {ALL_REDUCE, 2},
       {BROADCAST, 0},
       {ALL_GATHER, 1}},
      {{REDUCE_SCATTER, 1},
       {REDUCE, 0},
       {ALL_REDUCE, 2},
       {ALL_GATHER, 1},
       {BROADCAST, 0}},
  };
  for (const std::vector<StepOn>& steps : right) {
    Group group = GroupWith({{2, 1}, {2, 2}, {3, 4}});
    AddWay(ALL_REDUCE, steps, group);
    EXPECT_TRUE(Agrees(group)) << group.DebugString();
  }
  Group group = GroupWith({{2, 1}, {2, 2}});
  AddWay(ALL_REDUCE, {{REDUCE, 0}, {ALL_REDUCE, 1}}, group);
  ExpectRefused(group, 4, "has its sum at one place only");
  EXPECT_FALSE(Agrees(group));
}

TEST(Ways, SaysWhoTakesPart) {
  Group group = GroupWith({{2, 1}, {2, 2}});
  AddWay(ALL_REDUCE, {{REDUCE, 0}, {ALL_REDUCE, 1}, {BROADCAST, 0}}, group);
  ASSERT_TRUE(CheckWays(group, 4).ok());
  for (int m = 0; m < 4; ++m) {
    const Group::Way& way = group.ways(0);
    EXPECT_TRUE(TakesPart(group, way, m, {.step = 0}));
    EXPECT_EQ(TakesPart(group, way, m, {.step = 1}), m % 2 == 0);
    EXPECT_TRUE(TakesPart(group, way, m, {.step = 2}));
  }
  group.clear_ways();
  AddWay(BROADCAST, {{BROADCAST, 1}, {BROADCAST, 0}}, group);
  for (int m = 0; m < 4; ++m) {
    EXPECT_EQ(TakesPart(group, group.ways(0), m, {.step = 0, .root = 3}),
              m % 2 == 1);
    EXPECT_TRUE(TakesPart(group, group.ways(0), m, {.step = 1, .root = 3}));
  }
}

TEST(Ways, RefusesLevelsThatAreNone) {
  for (const LevelSize level : {LevelSize{0, 1},
                                {1, 1},
                                {-2, 1},
                                {2, 0},
                                {2, -1},
                                {3, 1},
                                {2, 3},
                                {1 << 30, 1 << 30}}) {
    ExpectRefused(GroupWith({level}), 4, "level every");
  }
  ExpectRefused(GroupWith({}), 0, "no members");
  EXPECT_TRUE(CheckWays(GroupWith({}), 1).ok());
}

TEST(Ways, RefusesWaysOverOtherMembers) {
  const std::vector<StepOn> all_reduce = {
      {REDUCE_SCATTER, 0}, {ALL_REDUCE, 1}, {ALL_GATHER, 0}};
  Group group = GroupWith({{2, 1}, {2, 2}});
  AddWay(ALL_REDUCE, all_reduce, group);
  EXPECT_TRUE(CheckWays(group, 4).ok());
  ExpectRefused(group, 8, "no factors of 8");
  group.mutable_levels(1)->set_stride(1);  // the same members twice
  ExpectRefused(group, 4, "no factors of 4");
  for (const int level : {-1, 2, 1 << 30}) {
    group = GroupWith({{2, 1}, {2, 2}});
    AddWay(ALL_REDUCE, {{ALL_REDUCE, level}}, group);
    ExpectRefused(group, 4, "is none of 2");
  }
  group = GroupWith({{2, 1}, {2, 2}});
  AddWay(SHIFT, {{SHIFT, 0}, {SHIFT, 1}}, group);
  ExpectRefused(group, 4, "flat only");
}

TEST(Ways, RefusesPiecesThatAreNone) {
  Group group = GroupWith({{2, 1}, {2, 2}});
  Group::Way& way =
      AddWay(ALL_REDUCE, {{ALL_REDUCE, 0}, {ALL_REDUCE, 1}}, group);
  for (const int pieces : {-1, kWayPiecesMax + 1, 1 << 30}) {
    way.set_pieces(pieces);
    ExpectRefused(group, 4, absl::StrCat("cut into ", pieces, " pieces"));
  }
  way.set_pieces(kWayPiecesMax);
  EXPECT_TRUE(CheckWays(group, 4).ok());
  way.clear_steps();
  ExpectRefused(group, 4, "pieces but has no steps");
}

TEST(Ways, TheWayOfASizeIsTheLastThatBeginsBelow) {
  const std::vector<StepOn> steps = {{ALL_REDUCE, 0}, {ALL_REDUCE, 1}};
  Group group = GroupWith({{2, 1}, {2, 2}});
  AddWay(ALL_REDUCE, steps, group, 100);
  AddWay(ALL_REDUCE, {}, group, 1000);  // flat
  ASSERT_TRUE(CheckWays(group, 4).ok());
  EXPECT_TRUE(HasSteps(group));
  EXPECT_EQ(WayOf(group, ALL_REDUCE, 99), nullptr);
  EXPECT_EQ(WayOf(group, ALL_REDUCE, 100), &group.ways(0));
  EXPECT_EQ(WayOf(group, ALL_REDUCE, 999), &group.ways(0));
  EXPECT_EQ(WayOf(group, ALL_REDUCE, 1000), nullptr);
  EXPECT_EQ(WayOf(group, ALL_GATHER, 500), nullptr);
  EXPECT_EQ(WayOf(group, REDUCE, 500), &group.ways(0))
      << "a reduce goes as the all-reduce of its size";
  group.mutable_ways(1)->set_bytes_min(100);
  ExpectRefused(group, 4, "out of order");
}

TEST(Ways, CommunicatorsOfALevelTileTheMembers) {
  for (const LevelSize size : {LevelSize{2, 1}, {3, 2}, {2, 6}, {12, 1}}) {
    const Group group = GroupWith({size});
    const Group::Level& level = group.levels(0);
    std::vector<int> count(CountOn(level, 12));
    int next = 0;
    for (int m = 0; m < 12; ++m) {
      const std::vector<int> members = MembersOn(level, m);
      EXPECT_EQ(members[PlaceOn(level, m)], m);
      ++count[NumberOn(level, m)];
      if (PlaceOn(level, m) == 0) {
        EXPECT_EQ(NumberOn(level, m), next++) << "as they come";
      }
    }
    EXPECT_EQ(count, std::vector<int>(CountOn(level, 12), size.size));
  }
}

TEST(Ways, CarriersNameTheBackendOfEachCommunicator) {
  Group group = GroupWith({{2, 1}, {2, 2}});
  Group::Carrier& carrier = *group.add_carriers();
  EXPECT_EQ(BackendOn(carrier, 0, 1), "") << "chosen by nobody yet";
  carrier.add_levels()->add_backends("shared_memory");
  ExpectRefused(group, 4, "carries 1 of 2 levels");
  carrier.add_levels()->add_backends("gloo");
  EXPECT_TRUE(CheckWays(group, 4).ok());
  EXPECT_EQ(BackendOn(carrier, 0, 1), "shared_memory");
  carrier.mutable_levels(0)->add_backends("gloo");
  EXPECT_TRUE(CheckWays(group, 4).ok());
  EXPECT_EQ(BackendOn(carrier, 0, 1), "gloo");
  carrier.mutable_levels(0)->add_backends("gloo");
  ExpectRefused(group, 4, "names 3 backends for 2");
}

}  // namespace
}  // namespace troupe
