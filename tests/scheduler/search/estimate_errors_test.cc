#include "scheduler/search/estimate_errors.h"

#include <limits>

#include "gtest/gtest.h"

namespace troupe {
namespace {

constexpr double kAssumed = 0.6;
constexpr double kKept = 1 - EstimateErrors::kMargin;

Candidate Of(int tensor, const char* schedule, int zero) {
  Candidate candidate;
  ParallelismSpec& parallelism = candidate.parallelism;
  parallelism.set_data(4);
  parallelism.set_zero(zero);
  if (tensor > 1) parallelism.set_tensor(tensor);
  if (*schedule != 0) {
    parallelism.set_pipeline(2);
    parallelism.set_pipeline_schedule(schedule);
  }
  return candidate;
}

TEST(EstimateErrors, FamiliesShareRowsAndSchedule) {
  const Family family = FamilyOf(Of(2, "1f1b", 1));
  EXPECT_EQ(FamilyOf(Of(4, "1f1b", 1)).own, family.own);
  EXPECT_NE(FamilyOf(Of(4, "1f1b", 3)).own, family.own);
  EXPECT_NE(FamilyOf(Of(2, "gpipe", 1)).own, family.own);
  EXPECT_NE(FamilyOf(Of(2, "1f1b", 0)).own, family.own);
  EXPECT_EQ(FamilyOf(Of(2, "gpipe", 0)).rows, family.rows);
  EXPECT_NE(FamilyOf(Of(1, "1f1b", 1)).rows, family.rows);
}

TEST(EstimateErrors, ThoseThatAreMostAlikeTell) {
  const Family family = FamilyOf(Of(2, "1f1b", 0));
  const Family same_rows = FamilyOf(Of(2, "gpipe", 0));
  const Family other = FamilyOf(Of(1, "", 0));
  EstimateErrors errors(kAssumed);
  EXPECT_EQ(errors.Expected(family), 1);
  EXPECT_EQ(errors.Least(family), 1 / (1 + kAssumed));
  errors.Add(family, 2);
  EXPECT_EQ(errors.Expected(family), 2);
  EXPECT_EQ(errors.LeastMemory(family), 1);
  EXPECT_EQ(errors.Expected(same_rows), 2);
  EXPECT_EQ(errors.Expected(other), 2);
  EXPECT_EQ(errors.Least(family), 1 / (1 + kAssumed)) << "one tells too little";
  for (int i = 1; i < EstimateErrors::kToldOfFamily; ++i) errors.Add(family, 3);
  for (int i = 0; i < EstimateErrors::kTold; ++i) errors.Add(other, 1);
  EXPECT_EQ(errors.Least(family), 2 * kKept);
  EXPECT_EQ(errors.Least(same_rows), 2 * kKept);
  EXPECT_EQ(errors.Least(other), kKept);
  // One of its own is not enough to say the least.
  errors.Add(same_rows, 5);
  EXPECT_EQ(errors.Expected(same_rows), 5);
  EXPECT_EQ(errors.Least(same_rows), 2 * kKept);
  EstimateErrors of_memory(kAssumed);
  of_memory.Add(family, 1, 1.5);
  of_memory.Add(family, 1, 1.1);
  EXPECT_EQ(of_memory.LeastMemory(family), 1.1);
  EXPECT_EQ(of_memory.LeastMemory(same_rows), 1) << "nothing is known of it";
  // Never below the bound that all keep to.
  for (int i = 0; i < 10; ++i) errors.Add(other, 0.1);
  EXPECT_EQ(errors.Least(other), 1 / (1 + kAssumed));
}

TEST(EstimateErrors, NothingIsToldWhereAllIsToBeSimulated) {
  EstimateErrors errors(std::numeric_limits<double>::infinity());
  const Family family = FamilyOf(Of(2, "", 0));
  for (int i = 0; i < 100; ++i) errors.Add(family, 2);
  EXPECT_EQ(errors.Least(family), 0);
}

}  // namespace
}  // namespace troupe
