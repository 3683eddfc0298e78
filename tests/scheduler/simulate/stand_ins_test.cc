#include "scheduler/simulate/stand_ins.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/scheduler/example_plan.h"

namespace troupe {
namespace {

using ::testing::Each;

// Each has measured something else.
std::vector<WorkerDescription> Workers(int count) {
  std::vector<WorkerDescription> workers = ExampleWorkers(count);
  for (int i = 0; i < count; ++i) {
    workers[i].mutable_calibration()->mutable_matmul(0)->set_flops_per_second(
        1e9 + (i * 7) % count);
  }
  return workers;
}

TEST(StandIns, OfAFewWorkersEachIsItself) {
  const std::vector<int> few = StandIns(Workers(kCalibrationsMax), F32);
  for (int i = 0; i < kCalibrationsMax; ++i) EXPECT_EQ(few[i], i);
}

TEST(StandIns, OfManyTheSlowestOfAKindIsAll) {
  std::vector<WorkerDescription> workers = Workers(kCalibrationsMax + 1);
  EXPECT_THAT(StandIns(workers, F32), Each(0));
  // Those with more threads are of another kind.
  for (int i = 0; i < 3; ++i) workers[i].set_threads(4);
  const std::vector<int> two_kinds = StandIns(workers, F32);
  EXPECT_EQ(two_kinds[2], 0);
  EXPECT_NE(two_kinds[3], 0);
  for (int i = 3; i <= kCalibrationsMax; ++i) {
    EXPECT_EQ(two_kinds[i], two_kinds[3]);
  }
}

// Whatever it reaches in another type.
TEST(StandIns, TheSlowestIsSoAtTheTypeOfTheJob) {
  std::vector<WorkerDescription> workers = Workers(kCalibrationsMax + 1);
  workers[5].mutable_calibration()->mutable_matmul(0)->set_flops_per_second(
      1e8);
  MatmulRate& bf16 = *workers[5].mutable_calibration()->add_matmul();
  bf16.set_dtype(BF16);
  bf16.set_flops_per_second(1e12);
  EXPECT_THAT(StandIns(workers, F32), Each(5));
}

// A worker that is one of many and like them is measured once.
TEST(StandIns, AsManyAsThereAreWhereMostAreEqual) {
  const std::vector<int> equal = StandIns(ExampleWorkers(300), F32);
  for (int i = 0; i < 300; ++i) EXPECT_EQ(equal[i], i);
}

}  // namespace
}  // namespace troupe
