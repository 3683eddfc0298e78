#include "scheduler/passes/draft.h"

#include <algorithm>
#include <set>

#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

TEST(Draft, UnitsAndGroups) {
  const Draft draft = ExampleDraft(ExampleJob({.data = 2}), "");
  EXPECT_EQ(UnitsOf(draft.plan, 1), (std::vector<int>{0, 1, 2, 3}));
  const std::vector<Placement> placements = PlacementsOf(draft.plan, 1);
  ASSERT_EQ(placements.size(), 4u);
  EXPECT_EQ(placements[2].unit(), 2);
  EXPECT_EQ(draft.plan.groups(placements[2].groups(0)).name(), "data-0");
  EXPECT_EQ(WorldGroup(draft.plan), 0);
}

TEST(Draft, TiedUnitsShareGradients) {
  JobSpec job = ExampleJob({});
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 3),
            (std::vector<int>{0, 3}));
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 1),
            (std::vector<int>{1}));
  job.mutable_model()->set_tie_word_embeddings(false);
  EXPECT_EQ(GradientUnits(ExampleDraft(job, "").plan, 3),
            (std::vector<int>{3}));
}

TEST(Draft, SpreadGivesEachUnitToOneRankEvenly) {
  for (int data = 1; data <= 8; ++data) {
    for (int blocks = 1; blocks <= 9; ++blocks) {
      const Draft draft =
          ExampleDraft(ExampleJob({.data = data, .blocks = blocks}), "");
      std::multiset<int> units;
      std::vector<int64_t> bytes(data, 0);
      int64_t largest = 0;
      const auto spread = SpreadUnits(draft.plan);
      ASSERT_EQ(spread.size(), data);
      for (int r = 0; r < data; ++r) {
        int before = -1;
        for (const auto& [u, part] : spread[r]) {
          EXPECT_GT(u, before);
          EXPECT_EQ(part, 0);
          before = u;
          units.insert(u);
          bytes[r] += FlatBytes(draft.plan.units(u));
          largest = std::max(largest, FlatBytes(draft.plan.units(u)));
        }
      }
      EXPECT_EQ(units.size(), blocks + 2);
      EXPECT_EQ(std::set<int>(units.begin(), units.end()).size(), blocks + 2);
      const auto [least, most] =
          std::minmax_element(bytes.begin(), bytes.end());
      EXPECT_LE(*most - *least, largest);
    }
  }
}

}  // namespace
}  // namespace troupe
