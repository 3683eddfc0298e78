#include "proto/plan/ways.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plan/layout.h"
#include "proto/plan/way_bytes.h"
#include "tests/proto/plan/made_ways.h"

namespace troupe {
namespace {

using Elements = std::vector<bool>;  // of the buffer, which a member holds

// Executes the steps with what each member holds of each element: whose
// summands, as often as it is. What the worker would do, element by element,
// and none of the reasons of CheckWays.
class Execution {
 public:
  Execution(const Group& group, const Group::Way& way, int members,
            int elements, int root)
      : group_(group),
        way_(way),
        members_(members),
        elements_(elements),
        has_(members, Elements(elements, true)),
        sums_(members, std::vector<std::vector<int>>(
                           elements, std::vector<int>(members))) {
    for (int m = 0; m < members; ++m) {
      for (int e = 0; e < elements; ++e) {
        sums_[m][e][m] = 1;
        if (way.collective() == ALL_GATHER) has_[m][e] = OwnerOf(e) == m;
        if (way.collective() == BROADCAST) has_[m][e] = m == root;
      }
    }
  }

  bool Run() {
    for (const Group::Step& step : way_.steps()) {
      int64_t sent = 0;
      const Group::Level& level = group_.levels(step.level());
      for (int m = 0; m < members_; ++m) {
        if (PlaceOn(level, m) != 0) continue;
        const int64_t moved = Step(step, level, MembersOn(level, m));
        if (moved < 0) return false;
        sent += moved;
      }
      sent_.push_back(sent);
    }
    return Arrived();
  }
  // By step, of all members.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  // Whose block it is.
  int OwnerOf(int element) const {
    for (int m = 0; m < members_; ++m) {
      const Range block = EvenPiece(elements_, {.index = m, .count = members_});
      if (element >= block.begin && element < block.end) return m;
    }
    return -1;
  }

  // What they send; -1: they cannot.
  int64_t Step(const Group::Step& step, const Group::Level& level,
               const std::vector<int>& ranks) {
    const int64_t others = level.size() - 1;
    const bool sums =
        way_.collective() == ALL_REDUCE || way_.collective() == REDUCE_SCATTER;
    if (step.collective() == BROADCAST) {
      if (sums) return TellOthers(ranks);
      if (way_.collective() != BROADCAST) return -1;
      const int from = HolderAmong(ranks);
      if (from == -2) return -1;
      if (from < 0) return 0;
      for (const int m : ranks) has_[m] = has_[from];
      return others * elements_;
    }
    if (step.collective() == ALL_GATHER) return Gather(ranks);
    const bool known = step.collective() == ALL_REDUCE ||
                       step.collective() == REDUCE_SCATTER ||
                       step.collective() == REDUCE;
    if (!known || !sums) return -1;
    for (const int m : ranks) {
      if (has_[m] != has_[ranks.front()]) return -1;
    }
    const Elements part = has_[ranks.front()];
    AddUp(part, ranks);
    const int64_t size = std::count(part.begin(), part.end(), true);
    if (step.collective() == ALL_REDUCE) return 2 * others * size;
    if (step.collective() == REDUCE) {
      for (const int m : ranks) {
        if (m != ranks.front()) has_[m] = Elements(elements_);
      }
      return others * size;
    }
    for (size_t place = 0; place < ranks.size(); ++place) {
      has_[ranks[place]] = PieceOf(part, level, static_cast<int>(place));
    }
    return others * size;
  }

  // What the first of them has, the others lack: of those who all lack it
  // nothing is moved.
  int64_t TellOthers(const std::vector<int>& ranks) {
    const int first = ranks.front();
    const Elements nothing(elements_);
    for (const int m : ranks) {
      if (m != first && has_[m] != nothing) return -1;
    }
    int64_t sent = 0;
    for (const int m : ranks) {
      if (m == first) continue;
      has_[m] = has_[first];
      sums_[m] = sums_[first];
      sent += std::count(has_[m].begin(), has_[m].end(), true);
    }
    return sent;
  }

  // -1: nobody; -2: all.
  int HolderAmong(const std::vector<int>& ranks) const {
    int holders = 0;
    int holder = -1;
    for (const int m : ranks) {
      if (elements_ == 0 || !has_[m][0]) continue;
      ++holders;
      holder = m;
    }
    return holders == static_cast<int>(ranks.size()) ? -2 : holder;
  }

  void AddUp(const Elements& part, const std::vector<int>& ranks) {
    for (int e = 0; e < elements_; ++e) {
      if (!part[e]) continue;
      std::vector<int> sum(members_);
      for (const int m : ranks) {
        for (int i = 0; i < members_; ++i) sum[i] += sums_[m][e][i];
      }
      for (const int m : ranks) sums_[m][e] = sum;
    }
  }

  // Of an all-reduce a piece of a range; of a reduce-scatter the blocks of
  // those at the place.
  Elements PieceOf(const Elements& part, const Group::Level& level,
                   int place) const {
    Elements piece(elements_);
    const int64_t size = std::count(part.begin(), part.end(), true);
    const Range range =
        EvenPiece(size, {.index = place, .count = level.size()});
    int64_t seen = 0;
    for (int e = 0; e < elements_; ++e) {
      if (!part[e]) continue;
      piece[e] = way_.collective() == ALL_REDUCE
                     ? seen >= range.begin && seen < range.end
                     : PlaceOn(level, OwnerOf(e)) == place;
      ++seen;
    }
    return piece;
  }

  int64_t Gather(const std::vector<int>& ranks) {
    if (way_.collective() != ALL_GATHER && way_.collective() != ALL_REDUCE) {
      return -1;
    }
    Elements all(elements_);
    std::vector<int> holder(elements_, -1);
    const Elements nothing(elements_);
    const bool waits = has_[ranks.front()] == nothing;
    for (const int m : ranks) {
      if ((has_[m] == nothing) != waits) return -1;
    }
    for (const int m : ranks) {
      for (int e = 0; e < elements_; ++e) {
        if (!has_[m][e]) continue;
        if (all[e]) return -1;  // pieces that are not apart
        all[e] = true;
        holder[e] = m;
      }
    }
    if (way_.collective() == ALL_REDUCE && !IsRange(all)) return -1;
    for (const int m : ranks) {
      has_[m] = all;
      for (int e = 0; e < elements_; ++e) {
        if (all[e]) sums_[m][e] = sums_[holder[e]][e];
      }
    }
    return static_cast<int64_t>(ranks.size() - 1) *
           std::count(all.begin(), all.end(), true);
  }

  static bool IsRange(const Elements& part) {
    int edges = 0;
    bool before = false;
    for (const bool in : part) {
      edges += in != before ? 1 : 0;
      before = in;
    }
    return edges <= 2;
  }

  bool Arrived() const {
    const bool sums =
        way_.collective() == ALL_REDUCE || way_.collective() == REDUCE_SCATTER;
    for (int m = 0; m < members_; ++m) {
      for (int e = 0; e < elements_; ++e) {
        const bool wanted =
            way_.collective() != REDUCE_SCATTER || OwnerOf(e) == m;
        if (has_[m][e] != wanted) return false;
        if (!wanted || !sums) continue;
        if (sums_[m][e] != std::vector<int>(members_, 1)) return false;
      }
    }
    return true;
  }

  const Group& group_;
  const Group::Way& way_;
  const int members_;
  const int elements_;
  std::vector<Elements> has_;
  std::vector<std::vector<std::vector<int>>> sums_;  // member, element, of whom
  std::vector<int64_t> sent_;
};

int MembersOf(const Group& group) {
  int64_t members = 1;
  for (const Group::Level& level : group.levels()) members *= level.size();
  return static_cast<int>(members);
}

// An all-to-all: blocks by whose they are and for whom. A member keeps them by
// number: that of the one they go to, and, where that differs from the member's
// on levels that are done, where they came from. The step over a level takes
// the block of a number to the place that the number has on it.
class Exchange {
 public:
  Exchange(const Group& group, const Group::Way& way, int members)
      : group_(group), way_(way), members_(members), blocks_(members) {
    for (int m = 0; m < members; ++m) {
      for (int to = 0; to < members; ++to) blocks_[m].emplace_back(m, to);
    }
  }

  bool Run() {
    for (const Group::Step& step : way_.steps()) {
      if (step.collective() != ALL_TO_ALL) return false;
      const Group::Level& level = group_.levels(step.level());
      const auto before = blocks_;
      int64_t sent = 0;
      for (int m = 0; m < members_; ++m) {
        for (int number = 0; number < members_; ++number) {
          const int place = PlaceOn(level, number);
          const int mine = PlaceOn(level, m);
          const int there = m + (place - mine) * level.stride();
          const int as = number + (mine - place) * level.stride();
          blocks_[there][as] = before[m][number];
          sent += there != m ? 1 : 0;
        }
      }
      sent_.push_back(sent);
    }
    for (int m = 0; m < members_; ++m) {
      for (int from = 0; from < members_; ++from) {
        if (blocks_[m][from] != std::pair(from, m)) return false;
      }
    }
    return true;
  }
  // By step, of all members: blocks.
  const std::vector<int64_t>& sent() const { return sent_; }

 private:
  const Group& group_;
  const Group::Way& way_;
  const int members_;
  std::vector<std::vector<std::pair<int, int>>> blocks_;
  std::vector<int64_t> sent_;
};

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
    Exchange exchange(group, way, members);
    right = exchange.Run();
    for (const int64_t blocks : exchange.sent()) sent.push_back(3 * blocks);
  } else {
    const int roots = way.collective() == BROADCAST ? members : 1;
    for (int root = 0; root < roots; ++root) {
      Execution execution(group, way, members, elements, root);
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

// Every row of up to so many steps, of each collective and level.
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

// Who waits for a sum takes no part in what the others do with it: by shares on
// the level between, and whatever comes down first.
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
