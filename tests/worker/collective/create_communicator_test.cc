#include "worker/collective/create_communicator.h"

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

TEST(CreateCommunicatorTest, ListsItsBackends) {
  EXPECT_EQ(CommunicatorBackends(),
            (std::vector<std::string>{"in_process", "shared_memory", "gloo",
                                      "nccl"}));
}

TEST(CreateCommunicatorTest, RefusesABackendThatIsUnknown) {
  InMemoryStore store;
  const absl::Status status =
      CreateCommunicator("pigeons", TestSeat(2, 0, &store)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "communicator backend pigeons is unknown; there are in_process, "
            "shared_memory, gloo, nccl");
}

// As if rank 0 were in another container: the others do with sockets.
TEST(CreateCommunicatorTest, MembersThatShareNoMemoryUseGloo) {
  InMemoryStore store;
  ASSERT_TRUE(
      store.Set("test-group/shared_memory/0", "\nthere is no memory for it")
          .ok());
  OnThreads(2, [&](int index) {
    // Rank 0 knows it already.
    auto communicator = CreateCommunicator(
        index == 0 ? "gloo" : "shared_memory", TestSeat(2, index, &store));
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_TRUE((*communicator)->Barrier({}).ok());
  });
}

TEST(CreateCommunicatorDeathTest, ASeatIsInItsGroup) {
  InMemoryStore store;
  EXPECT_DEATH(
      CreateCommunicator("gloo", TestSeat(2, 2, &store)).status().IgnoreError(),
      "seat 2 of group test-group");
}

}  // namespace
}  // namespace troupe
