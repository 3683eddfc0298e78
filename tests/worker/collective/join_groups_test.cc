#include "worker/collective/join_groups.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "ops/cpu/device.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

// Two groups of two ranks along each of two axes.
Plan TwoByTwo() {
  Plan plan;
  for (const std::string name : {"data", "tensor"}) {
    Axis& axis = *plan.mutable_mesh()->add_axes();
    axis.set_name(name);
    axis.set_size(2);
    Group& group = *plan.add_groups();
    group.set_name(name);
    group.add_spans()->set_axis(name);
    group.add_carriers()->set_backend("in_process");
  }
  return plan;
}

TEST(JoinGroupsTest, ReachesThePeersOfEachGroup) {
  const Plan plan = TwoByTwo();
  InMemoryStore store;
  OnThreads(4, [&](int rank) {
    const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
    const auto joined = JoinGroups(plan.groups(), {0, 1},
                                   {.mesh = plan.mesh(),
                                    .rank = rank,
                                    .store = store,
                                    .timeout = absl::Minutes(1),
                                    .device = *device});
    ASSERT_TRUE(joined.ok()) << joined.status();
    // Ranks are rows of two: along `data` those two apart are together.
    std::vector<std::vector<int>> of_each = {{rank % 2, rank % 2 + 2},
                                             {rank / 2 * 2, rank / 2 * 2 + 1}};
    for (int g = 0; g < 2; ++g) {
      Communicator& communicator = *(*joined)[g];
      EXPECT_EQ(communicator.group().ranks, of_each[g]);
      EXPECT_EQ(communicator.group().ranks[communicator.rank()], rank);
      std::vector<int32_t> sum = {rank};
      ASSERT_TRUE(communicator
                      .AllReduce(CommBuffer::Of(absl::MakeSpan(sum)),
                                 ReduceOp::kSum, {.name = "ranks"})
                      .ok());
      EXPECT_EQ(sum[0], of_each[g][0] + of_each[g][1]);
    }
  });
}

TEST(JoinGroupsTest, JoinsThoseThatItIsToldTo) {
  const Plan plan = TwoByTwo();
  InMemoryStore store;
  OnThreads(2, [&](int rank) {
    const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
    std::vector<int> staged;
    const auto joined =
        JoinGroups(plan.groups(), {1},
                   {.mesh = plan.mesh(),
                    .rank = rank,
                    .store = store,
                    .timeout = absl::Minutes(1),
                    .device = *device,
                    .staging = [&](int group, const Group::Carrier& carrier)
                        -> absl::StatusOr<StagingMemory> {
                      EXPECT_EQ(carrier.backend(), "in_process");
                      staged.push_back(group);
                      return StagingMemory();
                    }});
    ASSERT_TRUE(joined.ok()) << joined.status();
    EXPECT_EQ((*joined)[0], nullptr);
    EXPECT_NE((*joined)[1], nullptr);
    EXPECT_EQ(staged, std::vector<int>{1});
  });
}

TEST(JoinGroupsTest, SaysWhyThereIsNoMemoryToStageThrough) {
  const Plan plan = TwoByTwo();
  InMemoryStore store;
  const std::unique_ptr<Device> device = NewCpuDevice({.threads = 1});
  const absl::Status none = absl::FailedPreconditionError("no host tier");
  EXPECT_EQ(JoinGroups(plan.groups(), {0},
                       {.mesh = plan.mesh(),
                        .store = store,
                        .device = *device,
                        .staging = [&](int, const Group::Carrier&)
                            -> absl::StatusOr<StagingMemory> { return none; }})
                .status(),
            none);
}

}  // namespace
}  // namespace troupe
