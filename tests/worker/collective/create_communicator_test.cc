#include "worker/collective/create_communicator.h"

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {
namespace {

TEST(CreateCommunicatorTest, ListsItsBackends) {
  EXPECT_EQ(CommunicatorBackends(),
            (std::vector<std::string>{"in_process", "gloo"}));
}

TEST(CreateCommunicatorTest, RefusesABackendThatIsUnknown) {
  InMemoryStore store;
  const absl::Status status =
      CreateCommunicator("pigeons", TestSeat(2, 0, &store)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(),
            "communicator backend pigeons is unknown; there are in_process, "
            "gloo");
}

TEST(CreateCommunicatorDeathTest, ASeatIsInItsGroup) {
  InMemoryStore store;
  EXPECT_DEATH(
      CreateCommunicator("gloo", TestSeat(2, 2, &store)).status().IgnoreError(),
      "seat 2 of group test-group");
}

}  // namespace
}  // namespace troupe
