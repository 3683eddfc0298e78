#include "proto/plan/at_rest.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/mesh.h"
#include "proto/plan/roles.h"
#include "proto/plan/slices.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

int64_t TrainedHere(const Plan& plan, const Placement& placement, int rank) {
  int64_t elements = 0;
  for (const StretchAtRest& at : AtRest(plan, placement, rank)) {
    if (!at.stretch.frozen) elements += at.rests.size();
  }
  return elements;
}

// Of every part of every unit each element is as many ranks' duty as any other:
// one's of those that have the same.
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
        EXPECT_LE(TrainedHere(plan, placement, rank),
                  LargestTrainedAtRest(plan, placement, rank));
        EXPECT_LE(duty.size(), LargestDuty(plan, placement, p, rank));
        for (int64_t i = duty.begin; i < duty.end; ++i) {
          ++duties[i - part.begin];
        }
      }
      const auto& shares = unit.parts(p).shares();
      const bool of_replicas_only = std::all_of(
          shares.begin(), shares.end(), [](const Unit::Part::Share& share) {
            return share.axis() == kReplicaAxis;
          });
      const int copies = ranks / (of_replicas_only ? ranks : 1);
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
    EXPECT_EQ(TrainedHere(plan, placement, 0), 0);
    EXPECT_EQ(LargestTrainedAtRest(plan, placement, 0), 0);
    EXPECT_EQ(IsDealt(placement), zero == 3);
    const int64_t all = plan.units(1).flat_elements();
    EXPECT_EQ(
        LargestFrozenAtRest(plan, placement, 0),
        zero == 3 ? EvenLines(all, {.index = 0, .count = 4}).size() : all);
  }
}

// A block with experts on `expert` ranks each.
JobSpec ExpertsJob(int data, int expert, int zero) {
  JobSpec job = ExampleJob({.data = data});
  ModelSpec& model = *job.mutable_model();
  model.set_architecture("mixtral");
  model.set_intermediate_size(12);
  model.set_num_experts(4);
  job.mutable_parallelism()->set_expert(expert);
  job.mutable_parallelism()->set_zero(zero);
  return job;
}

TEST(AtRest, PartsThatAreDealtOverOthersAreDealtAsOften) {
  for (const int zero : {1, 2, 3}) {
    for (const char* const frozen : {"", "*.self_attn.*", "*.experts.*"}) {
      for (const int data : {2, 4}) {
        JobSpec job = ExpertsJob(data, 2, zero);
        if (*frozen != '\0') job.mutable_training()->add_freeze(frozen);
        ExpectDealtEvenly(job, data);
      }
    }
  }
}

// What rests of the stretches lies behind one another in a slice, and what is
// dealt of them in a buffer that is whole for a while. Together the ranks of a
// stretch's group have all of it.
TEST(AtRest, StretchesLieBehindOneAnother) {
  for (const int expert : {2, 4}) {
    JobSpec job = ExpertsJob(4, expert, 3);
    job.mutable_training()->add_freeze("*norm*");
    const Plan plan = ExamplePlan(job);
    const Placement& placement = *FindPlacement(RoleOf(plan, 0), 1);
    int64_t dense = 0;
    for (int rank = 0; rank < 4; ++rank) {
      int64_t first = 0;
      int64_t unsharded = 0;
      int64_t end = 0;
      for (const StretchAtRest& at : AtRest(plan, placement, rank)) {
        EXPECT_EQ(at.first, first);
        EXPECT_EQ(at.stretch.all.begin, end);
        EXPECT_EQ(Both(at.rests, at.stretch.all), at.rests);
        first += at.rests.size();
        end = at.stretch.all.end;
        if (at.stretch.part == 0) dense += at.rests.size();
        if (!at.stretch.dealt.has_value()) {
          EXPECT_EQ(at.rests, at.stretch.all);
          continue;
        }
        EXPECT_EQ(at.stretch.unsharded, unsharded);
        unsharded += at.stretch.all.size();
      }
      EXPECT_EQ(end, plan.units(1).flat_elements());
      EXPECT_EQ(unsharded, DealtElements(plan, placement, DealtParts::kAll));
      EXPECT_LE(first, LargestTrainedAtRest(plan, placement, rank) +
                           LargestFrozenAtRest(plan, placement, rank));
    }
    EXPECT_EQ(dense, RangeOfPart(plan.units(1), 0).size());
    EXPECT_EQ(KeepsSome(plan, placement, DealtParts::kAll), expert == 4);
  }
}

TEST(AtRest, BothIsEmptyWhereRangesAreApart) {
  EXPECT_EQ(Both({0, 4}, {2, 9}), (Range{2, 4}));
  EXPECT_EQ(Both({0, 4}, {6, 9}).size(), 0);
  EXPECT_EQ(Both({6, 9}, {0, 4}).size(), 0);
}

}  // namespace
}  // namespace troupe
