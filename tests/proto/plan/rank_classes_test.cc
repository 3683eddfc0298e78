#include "proto/plan/rank_classes.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/planned_lanes.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// pipeline 2 x data 3 x tensor 2: the ranks at a place of the pipeline have one
// role; groups 0 "data", 1 "tensor", 2 "pipeline".
Plan TwoStages() {
  Plan plan;
  for (const auto& [name, size] :
       {std::pair("pipeline", 2), {"data", 3}, {"tensor", 2}}) {
    Axis& axis = *plan.mutable_mesh()->add_axes();
    axis.set_name(name);
    axis.set_size(size);
  }
  for (const char* axis : {"data", "tensor", "pipeline"}) {
    Group& group = *plan.add_groups();
    group.set_name(axis);
    group.add_spans()->set_axis(axis);
  }
  for (int p = 0; p < 2; ++p) {
    Role& role = *plan.add_roles();
    Role::Place& at = *role.add_at();
    at.set_axis("pipeline");
    at.set_place(p);
    *role.add_programs() =
        *ParseProgram(p == 0 ? "S u0 m0 p1 g2" : "V u0 m0 p0 g2");
  }
  return plan;
}

TEST(RankClasses, AreTheRolesWhereNothingElseDiffers) {
  const Plan plan = TwoStages();
  const RankClasses classes(plan);
  EXPECT_THAT(classes.first_ranks(), ElementsAre(0, 6));
  EXPECT_EQ(classes.FirstLike(5), 0);
  EXPECT_EQ(classes.FirstLike(11), 6);
  EXPECT_THAT(classes.Members(6, 0), ElementsAre(6));
  EXPECT_THAT(classes.Members(0, 2), ElementsAre(0, 6));
  EXPECT_EQ(classes.PeerOf(0, plan.roles(0).programs(0).instructions(0)), 6);
}

// Rank 3, of data 1 and tensor 1, differs; so then do its neighbour on tensor,
// those of its place on data and tensor, its peer, and the ranks that meet
// these: only a rank that is far from it on two axes is like another.
TEST(RankClasses, WhoMeetsOneThatDiffersDiffers) {
  const Plan plan = TwoStages();
  RankTraits traits;
  traits.ranks.assign(12, 0);
  traits.ranks[3] = 1;
  const RankClasses classes(plan, traits);
  EXPECT_THAT(classes.first_ranks(), ElementsAre(0, 1, 2, 3, 6, 7, 8, 9));
  EXPECT_EQ(classes.FirstLike(4), 0);
  EXPECT_EQ(classes.FirstLike(5), 1);
  EXPECT_EQ(classes.FirstLike(10), 6);
  EXPECT_THAT(classes.Members(1, 0), ElementsAre(1, 3));
  EXPECT_THAT(classes.Members(0, 1), ElementsAre(0, 1));
}

TEST(RankClasses, AGroupThatDiffersTellsItsRanksApart) {
  const Plan plan = TwoStages();
  RankTraits traits;
  traits.groups = {{0, 0, 0, 0}, {0, 0, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 0}};
  const RankClasses classes(plan, traits);
  EXPECT_THAT(classes.first_ranks(), ElementsAre(0, 4, 6, 10));
  EXPECT_EQ(classes.FirstLike(5), 4);
}

TEST(RankClasses, SoDoProcessorsThatAreSharedWithOthers) {
  const Plan plan = TwoStages();
  RankTraits traits;
  traits.shares = {{0}, {0}, {1}, {1}, {}, {}, {2}, {2}, {2}, {2}, {2}, {2}};
  const RankClasses classes(plan, traits);
  EXPECT_THAT(classes.first_ranks(), ElementsAre(0, 4, 6, 10));
}

}  // namespace
}  // namespace troupe
