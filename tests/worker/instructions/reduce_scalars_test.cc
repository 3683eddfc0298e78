#include "worker/instructions/reduce_scalars.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

TEST(ReduceScalars, SumsAndSpreadsTheStopFlag) {
  const JobSpec job = SmallJob();
  InMemoryStore store;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&job, &store, r] {
      SmallRank rank(job, {.ranks = 2, .rank = r});
      for (const Group& group : rank.state().plan->groups()) {
        auto communicator = CreateCommunicator(
            "in_process", {.group = {.name = group.name(), .ranks = {0, 1}},
                           .rank = r,
                           .store = &store});
        ASSERT_TRUE(communicator.ok()) << communicator.status();
        rank.state().communicators.push_back(*std::move(communicator));
      }
      rank.Sum(kLossSum) = 1 + r;
      rank.Sum(kTokensSum) = 10;
      rank.Sum(kSquaredNormSum) = 0.25;
      rank.Sum(kStopSum) = 0;
      rank.state().step.stop = r == 1;
      ASSERT_TRUE(rank.RunAll("A").ok());
      EXPECT_EQ(rank.Sum(kLossSum), 3);
      EXPECT_EQ(rank.Sum(kTokensSum), 20);
      EXPECT_EQ(rank.Sum(kSquaredNormSum), 0.5);
      EXPECT_EQ(rank.Sum(kStopSum), 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe
