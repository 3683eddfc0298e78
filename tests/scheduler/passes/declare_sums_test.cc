#include "scheduler/passes/declare_sums.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plan/sums.h"
#include "scheduler/passes/passes.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;

// "loads of 2: 3 at 5".
std::vector<std::string> SumsOf(const Plan& plan) {
  std::vector<std::string> sums;
  for (const Sum& sum : plan.sums()) {
    absl::optional<int> unit;
    if (sum.has_unit()) unit = sum.unit();
    const SumPlace place = PlaceOfSum(plan, sum.name(), unit);
    sums.push_back(absl::StrCat(
        sum.name(), unit.has_value() ? absl::StrCat(" of ", *unit) : "", ": ",
        place.elements, " at ", place.first));
  }
  return sums;
}

void AddAddend(const char* name, int64_t elements, bool own, Unit& unit) {
  Unit::Addend& addend = *unit.add_addends();
  addend.set_sum(name);
  addend.set_elements(elements);
  addend.set_own(own);
}

TEST(DeclareSums, EveryPlanBeginsWithTheSame) {
  const Plan plan = ExamplePlan(ExampleJob({.data = 2}));
  EXPECT_THAT(SumsOf(plan), ElementsAre("loss: 1 at 0", "tokens: 1 at 1",
                                        "squared_norm: 1 at 2", "stop: 1 at 3",
                                        "save: 1 at 4"));
  EXPECT_EQ(SumsBytes(plan), 40);
}

TEST(DeclareSums, UnitsHaveTheirOwnOrAddToOne) {
  Draft draft = ExampleDraft(ExampleJob({.data = 2}), "declare sums");
  for (const int u : {1, 2}) {
    AddAddend("loads", 3, /*own=*/true, *draft.plan.mutable_units(u));
    AddAddend("balance", 2, /*own=*/false, *draft.plan.mutable_units(u));
  }
  DeclareSums(draft);
  EXPECT_THAT(
      SumsOf(draft.plan),
      ElementsAre("loss: 1 at 0", "tokens: 1 at 1", "squared_norm: 1 at 2",
                  "stop: 1 at 3", "save: 1 at 4", "loads of 1: 3 at 5",
                  "balance: 2 at 8", "loads of 2: 3 at 10"));
  EXPECT_EQ(SumsBytes(draft.plan), 13 * 8);
  const auto& addends = draft.plan.units(1).addends();
  const std::vector<SumPlace> of_1 =
      SumRuns(draft.plan, 1, {addends.begin(), addends.end()});
  ASSERT_EQ(of_1.size(), 1) << "they lie behind one another";
  EXPECT_EQ(of_1[0].first, 5);
  EXPECT_EQ(of_1[0].elements, 5);
  std::vector<Unit::Addend> apart(1);
  apart[0].set_sum(kSaveSum);
  apart.push_back(addends[1]);
  EXPECT_EQ(SumRuns(draft.plan, 1, apart).size(), 2);
}

}  // namespace
}  // namespace troupe
