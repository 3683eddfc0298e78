// What the steps of a way move, and into how many pieces.
#include "proto/plan/way_bytes.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "proto/plan/ways.h"
#include "tests/proto/plan/made_ways.h"

namespace troupe {
namespace {

// What a member sends in an exchange does not depend on its levels.
TEST(WayBytes, LevelsSendNoMoreThanOneRing) {
  Group group = GroupWith({{4, 1}, {8, 4}});
  AddWay(ALL_REDUCE, {{REDUCE_SCATTER, 0}, {ALL_REDUCE, 1}, {ALL_GATHER, 0}},
         group);
  const auto bytes = BytesOfSteps(group, group.ways(0), 32,
                                  {.elements = 3200, .element_bytes = 4});
  ASSERT_EQ(bytes.size(), 3);
  EXPECT_EQ(bytes[0].whole, 12800);
  EXPECT_EQ(bytes[1].whole, 3200);
  EXPECT_EQ(bytes[2].whole, 12800);
  EXPECT_EQ(bytes[0].sent + bytes[1].sent + bytes[2].sent, 2 * 31 * 12800);
}

// As the worker cuts: each element is in one piece, and what is packed fits.
TEST(WayBytes, PiecesFitTheMemoryThatPacksThem) {
  for (const Collective collective :
       {ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, BROADCAST}) {
    Group group = GroupWith({{2, 1}, {3, 2}});
    Group::Way& way =
        AddWay(collective,
               collective == ALL_REDUCE
                   ? std::vector<StepOn>{{REDUCE_SCATTER, 0},
                                         {ALL_REDUCE, 1},
                                         {ALL_GATHER, 0}}
                   : std::vector<StepOn>{{collective, 0}, {collective, 1}},
               group);
    const bool packs = PacksBlocks(collective);
    const int buffers = collective == ALL_TO_ALL ? 2 : 1;  // in and out
    for (const int pieces : {0, 1, 2, 7, 64}) {
      way.set_pieces(pieces);
      ASSERT_TRUE(CheckWays(group, 6).ok());
      EXPECT_EQ(Overlaps(way), pieces > 1);
      const int64_t at_once = pieces > 1 ? way.steps_size() : 1;
      EXPECT_EQ(PiecesAtOnce(way), at_once);
      for (const int64_t elements :
           {int64_t{0}, int64_t{1}, int64_t{6}, int64_t{600},
            int64_t{6'000'006}, kLevelScratchBytes}) {
        const int64_t cut = PiecesOf(way, 6, {.elements = elements});
        const int64_t asked = std::max(1, pieces);
        const int64_t least = std::min(asked, std::max<int64_t>(1, elements));
        if (!packs) {
          EXPECT_EQ(cut, least);
          continue;
        }
        const int64_t block = std::max<int64_t>(1, elements / 6);
        EXPECT_LE(cut, block);
        const int64_t longest = (block - 1) / cut + 1;
        EXPECT_LE(longest, (block - 1) / asked + 1);
        EXPECT_LE(buffers * at_once * 6 * 4 * longest, kLevelScratchBytes);
      }
    }
  }
}

// As the worker does: each block is cut into even pieces, and those of one
// piece are packed. What not all blocks have goes in no step.
TEST(WayBytes, PiecesAreOfBlocks) {
  constexpr int kMembers = 6;
  for (const Collective collective : {REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL}) {
    Group group = GroupWith({{2, 1}, {3, 2}});
    Group::Way& way =
        AddWay(collective, {{collective, 0}, {collective, 1}}, group);
    for (const int pieces : {1, 3, 4, 7}) {
      way.set_pieces(pieces);
      for (const int64_t elements : {0, 5, 6, 66, 71, 600}) {
        const WayBuffer buffer = {.elements = elements};
        const auto bytes = BytesOfSteps(group, way, kMembers, buffer);
        const int64_t block = elements / kMembers;
        const auto cut = static_cast<int>(PiecesOf(way, kMembers, buffer));
        const int64_t piece =
            kMembers * EvenPiece(block, {.index = 0, .count = cut}).size();
        const int first = collective == REDUCE_SCATTER ? 1 : 3;
        const int last = collective == REDUCE_SCATTER ? 2 : 1;
        const bool whole = collective == ALL_TO_ALL;
        EXPECT_EQ(bytes[0].whole, 4 * (whole ? piece : piece / first))
            << elements << " in " << cut;
        EXPECT_EQ(bytes[1].whole, 4 * (whole ? piece : piece / last));
        int64_t sent = bytes[0].sent + bytes[1].sent;
        const int64_t even = 4 * kMembers * block;
        EXPECT_EQ(sent, whole ? even * kMembers * (1 * 3 + 2 * 2) / 6
                              : even * (kMembers - 1));
      }
    }
  }
}

TEST(WayBytes, ATreeSendsTheWholeToEachOnce) {
  Group group = GroupWith({{2, 1}, {2, 2}, {3, 4}});
  AddWay(ALL_REDUCE,
         {{REDUCE, 0},
          {REDUCE, 1},
          {ALL_REDUCE, 2},
          {BROADCAST, 1},
          {BROADCAST, 0}},
         group);
  ASSERT_TRUE(CheckWays(group, 12).ok());
  const auto bytes = BytesOfSteps(group, group.ways(0), 12, {.elements = 100});
  constexpr int64_t kBytes = 400;
  // Pairs side by side, those of every second member, three of every fourth.
  const int64_t messages[] = {6, 3, 4, 3, 6};
  for (int s = 0; s < 5; ++s) {
    EXPECT_EQ(bytes[s].sent, messages[s] * kBytes) << s;
    EXPECT_EQ(bytes[s].whole, kBytes) << s;
  }
}

TEST(WayBytes, PiecesSendTheSameBytes) {
  Group group = GroupWith({{4, 1}, {8, 4}});
  Group::Way& way =
      AddWay(ALL_REDUCE,
             {{REDUCE_SCATTER, 0}, {ALL_REDUCE, 1}, {ALL_GATHER, 0}}, group);
  const WayBuffer buffer = {.elements = 3200, .element_bytes = 4};
  const auto whole = BytesOfSteps(group, way, 32, buffer);
  way.set_pieces(10);
  EXPECT_TRUE(CheckWays(group, 32).ok());
  const auto pieces = BytesOfSteps(group, way, 32, buffer);
  for (int s = 0; s < 3; ++s) {
    EXPECT_EQ(pieces[s].sent, whole[s].sent);
    EXPECT_EQ(10 * pieces[s].whole, whole[s].whole);
  }
}

TEST(WayBytes, BytesOfManyRanksDoNotOverflow) {
  Group group = GroupWith({{8, 1}, {12500, 8}});
  AddWay(ALL_REDUCE, {{REDUCE_SCATTER, 0}, {ALL_REDUCE, 1}, {ALL_GATHER, 0}},
         group);
  ASSERT_TRUE(CheckWays(group, 100'000).ok());
  constexpr int64_t kElements = int64_t{1} << 38;  // a terabyte
  const auto bytes = BytesOfSteps(group, group.ways(0), 100'000,
                                  {.elements = kElements, .element_bytes = 4});
  EXPECT_EQ(bytes[0].sent, 4 * kElements * 7 * 12500);
  EXPECT_EQ(bytes[1].sent, 2 * 4 * kElements * 12499);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto most = BytesOfSteps(group, group.ways(0), 100'000,
                                 {.elements = kMost / 8, .element_bytes = 4});
  EXPECT_EQ(most[0].sent, kMost) << "no more than the type holds";
  EXPECT_EQ(most[0].whole, kMost / 8 * 4);
}

}  // namespace
}  // namespace troupe
