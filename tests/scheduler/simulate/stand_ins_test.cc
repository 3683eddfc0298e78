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
  const std::vector<int> few = StandIns(Workers(kCalibrationsMax));
  for (int i = 0; i < kCalibrationsMax; ++i) EXPECT_EQ(few[i], i);
}

TEST(StandIns, OfManyTheSlowestOfAKindIsAll) {
  std::vector<WorkerDescription> workers = Workers(kCalibrationsMax + 1);
  EXPECT_THAT(StandIns(workers), Each(0));
  // Those with more threads are of another kind.
  for (int i = 0; i < 3; ++i) workers[i].set_threads(4);
  const std::vector<int> two_kinds = StandIns(workers);
  EXPECT_EQ(two_kinds[2], 0);
  EXPECT_NE(two_kinds[3], 0);
  for (int i = 3; i <= kCalibrationsMax; ++i) {
    EXPECT_EQ(two_kinds[i], two_kinds[3]);
  }
}

// Who is one of many and like them is measured once.
TEST(StandIns, AsManyAsThereAreWhereMostAreEqual) {
  const std::vector<int> equal = StandIns(ExampleWorkers(300));
  for (int i = 0; i < 300; ++i) EXPECT_EQ(equal[i], i);
}

}  // namespace
}  // namespace troupe
