#include "proto/plan/at_rest.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/roles.h"
#include "proto/plan/slices.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

// Of every part of every unit each element is as many ranks' duty as any other:
// one's of those who have the same.
void ExpectDealtEvenly(const JobSpec& job, int ranks) {
  const Plan plan = ExamplePlan(job);
  for (int u = 0; u < plan.units_size(); ++u) {
    const Unit& unit = plan.units(u);
    for (int p = 0; p < unit.parts_size(); ++p) {
      const Range part = RangeOfPart(unit, p);
      if (part.size() == 0) continue;
      std::vector<int> duties(part.size());
      for (int rank = 0; rank < ranks; ++rank) {
        const Placement& placement = *FindPlacement(RoleOf(plan, rank), u);
        const Range duty = DutyOf(plan, placement, p, rank);
        EXPECT_EQ(Both(duty, PartAtRest(plan, placement, p, rank)), duty);
        EXPECT_LE(TrainedAtRest(plan, placement, rank).size(),
                  LargestTrainedAtRest(plan, placement));
        EXPECT_LE(duty.size(), LargestDuty(plan, placement, p));
        for (int64_t i = duty.begin; i < duty.end; ++i) {
          ++duties[i - part.begin];
        }
      }
      const int copies = ranks / (unit.parts(p).shares().empty() ? ranks : 1);
      EXPECT_GT(duties.front(), 0);
      EXPECT_LE(duties.front(), std::max(copies, 2));
      for (const int count : duties) ASSERT_EQ(count, duties.front());
    }
  }
}

TEST(AtRest, EveryElementIsDealtAsOften) {
  for (const int zero : {0, 1, 3}) {
    JobSpec job = ExampleJob({.data = 4});
    job.mutable_parallelism()->set_zero(zero);
    ExpectDealtEvenly(job, 4);
    if (zero > 0) job.mutable_parallelism()->set_zero_size(2);
    ExpectDealtEvenly(job, 4);
    job.mutable_parallelism()->set_tensor(2);
    job.mutable_parallelism()->set_sequence_parallel(true);
    ExpectDealtEvenly(job, 8);
  }
}

// Frozen parts are dealt with slices of parameters only, and saved once all the
// same.
TEST(AtRest, FrozenElementsAreDealtAsOften) {
  for (const int zero : {0, 1, 2, 3}) {
    JobSpec job = ExampleJob({.data = 4});
    job.mutable_training()->add_freeze("*bias");
    job.mutable_training()->add_freeze("*.h.0.*");
    job.mutable_parallelism()->set_zero(zero);
    ExpectDealtEvenly(job, 4);
    const Plan plan = ExamplePlan(job);
    const Placement& placement = *FindPlacement(RoleOf(plan, 0), 1);
    EXPECT_EQ(TrainedAtRest(plan, placement, 0).size(), 0);
    EXPECT_EQ(LargestTrainedAtRest(plan, placement), 0);
    EXPECT_EQ(DealsFrozen(plan, placement), zero == 3);
    const int64_t all = plan.units(1).flat_elements();
    EXPECT_EQ(
        LargestFrozenAtRest(plan, placement),
        zero == 3 ? EvenLines(all, {.index = 0, .count = 4}).size() : all);
  }
}

TEST(AtRest, BothIsEmptyWhereRangesAreApart) {
  EXPECT_EQ(Both({0, 4}, {2, 9}), (Range{2, 4}));
  EXPECT_EQ(Both({0, 4}, {6, 9}).size(), 0);
  EXPECT_EQ(Both({6, 9}, {0, 4}).size(), 0);
}

}  // namespace
}  // namespace troupe
