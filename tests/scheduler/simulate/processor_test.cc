#include "scheduler/simulate/processor.h"

#include <string>

#include "gtest/gtest.h"

namespace troupe {
namespace {

Processor::Task Task(int rank, int64_t ns, double cores = 1) {
  return {.at = {.rank = rank, .instruction = 0}, .cores = cores, .ns = ns};
}

// Ends all that runs: "rank@time ...".
std::string Drain(Processor& processor) {
  std::string text;
  while (!processor.idle()) {
    const int64_t now = processor.NextEnd();
    for (const RankInstruction& at : processor.TakeEnded(now)) {
      text += std::to_string(at.rank) + "@" + std::to_string(now) + " ";
    }
  }
  return text;
}

TEST(Processor, NobodySlowsDownWhileThereAreCores) {
  Processor processor(2);
  processor.Start(10, Task(0, 100));
  processor.Start(20, Task(1, 40));
  EXPECT_EQ(Drain(processor), "1@60 0@110 ");
}

// Three on two cores run at two thirds of their speed, two at their full one.
TEST(Processor, CoresAreSharedEvenly) {
  Processor processor(2);
  for (const int rank : {0, 1, 2}) {
    processor.Start(0, Task(rank, rank == 2 ? 200 : 100));
  }
  EXPECT_EQ(Drain(processor), "0@150 1@150 2@250 ");
}

TEST(Processor, WhoComesLaterSlowsDownTheRest) {
  Processor processor(1);
  processor.Start(0, Task(0, 100));
  processor.Start(50, Task(1, 20));
  EXPECT_EQ(processor.NextEnd(), 90);
  EXPECT_EQ(Drain(processor), "1@90 0@120 ");
}

TEST(Processor, RanksOfSeveralThreadsTakeSeveralCores) {
  Processor processor(4);
  processor.Start(0, Task(0, 100, /*cores=*/4));
  processor.Start(0, Task(1, 100, /*cores=*/4));
  EXPECT_EQ(Drain(processor), "0@200 1@200 ");
  EXPECT_TRUE(processor.idle());
  processor.Start(1000, Task(0, 100, /*cores=*/4));
  EXPECT_EQ(Drain(processor), "0@1100 ");
}

// Work is neither lost nor made: with all cores busy, n tasks of 1 s on c cores
// take n / c seconds, however they overlap.
TEST(Processor, KeepsTheSumOfWork) {
  Processor processor(3);
  constexpr int64_t kSecond = 1000000000;
  for (int rank = 0; rank < 700; ++rank) {
    processor.Start(rank, Task(rank, kSecond));
  }
  int64_t last = 0;
  while (!processor.idle()) {
    last = processor.NextEnd();
    processor.TakeEnded(last);
  }
  EXPECT_NEAR(static_cast<double>(last), 700.0 / 3 * kSecond, 1000);
}

}  // namespace
}  // namespace troupe
