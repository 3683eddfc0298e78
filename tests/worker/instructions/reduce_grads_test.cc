#include "worker/instructions/reduce_grads.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/equivalence/small_job.h"
#include "tests/worker/rank/small_rank.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {
namespace {

TEST(ReduceGrads, SumsWholeBucketsOverTheGroup) {
  const JobSpec job = SmallJob();
  InMemoryStore store;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&job, &store, r] {
      // One bucket holds all.
      SmallRank rank(job, {.ranks = 2, .rank = r});
      auto communicator = CreateCommunicator(
          "in_process", {.group = {.name = "data", .ranks = {0, 1}},
                         .rank = r,
                         .store = &store});
      ASSERT_TRUE(communicator.ok()) << communicator.status();
      for (int g = 0; g < rank.state().plan->groups_size(); ++g) {
        rank.state().communicators.push_back(nullptr);
      }
      const int group = rank.state().role().placements(0).parts(0).summed();
      rank.state().communicators[group] = *std::move(communicator);
      for (int unit = 0; unit < 4; ++unit) {
        float* gradient = rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, unit);
        const int64_t count =
            rank.Find(Buffer::PARAMETER_GRADIENTS, unit).bytes() /
            sizeof(float);
        std::fill(gradient, gradient + count, 10.0f * unit + r);
      }
      ASSERT_TRUE(rank.RunAll("R").ok());
      for (int unit = 0; unit < 4; ++unit) {
        const float* gradient =
            rank.Memory<float>(Buffer::PARAMETER_GRADIENTS, unit);
        const int64_t count =
            rank.Find(Buffer::PARAMETER_GRADIENTS, unit).bytes() /
            sizeof(float);
        EXPECT_EQ(std::count(gradient, gradient + count, 20.0f * unit + 1),
                  count);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe
