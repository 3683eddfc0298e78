#include "worker/collective/staged/staged_communicator.h"

#include <memory>

#include "absl/strings/match.h"
#include "proto/base/local_cause.h"
#include "storage/tier/arena.h"
#include "tests/ops/split_memory_device.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/operation_failure_contract.h"
#include "tests/worker/collective/ranks.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"
#include "worker/rank/device_allocator.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewSplitDevice(int) {
  return std::make_unique<SplitMemoryDevice>(CpuDeviceOptions{.threads = 1});
}

RanksOptions Staged(const std::string& backend, int ranks) {
  return {.backend = backend, .ranks = ranks, .new_device = NewSplitDevice};
}

INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorContract,
                         testing::Values(Staged("in_process", 1),
                                         Staged("in_process", 3)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorContract,
                         testing::Values(Staged("gloo", 2)), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, CommunicatorFailureContract,
                         testing::Values(Staged("in_process", 3)), RanksName);
INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorFailureContract,
                         testing::Values(Staged("gloo", 2)), RanksName);
INSTANTIATE_TEST_SUITE_P(InProcess, OperationFailureContract,
                         testing::Values(Staged("in_process", 3)), RanksName);

// Of a budget: there from the start, and more only while the budget lasts.
TEST(StageThroughHost, TakesItsMemoryOfABudget) {
  SplitMemoryDevice device({.threads = 1});
  PinnedAllocator pinned(device);
  Arena arena("host", 8192, pinned);
  InMemoryStore store;
  const StagingMemory memory = {
      .arena = &arena, .line_item = "group_staging", .bytes = 4096};
  const auto staged = [&](const StagingMemory& memory) {
    return StageThroughHost(
        *CreateCommunicator("in_process", TestSeat(1, 0, &store)), device,
        memory);
  };
  {
    const auto communicator = staged(memory);
    ASSERT_TRUE(communicator.ok()) << communicator.status();
    EXPECT_EQ(arena.ledger()["group_staging"].used, 4096u);
    const auto too_much =
        staged({.arena = &arena, .line_item = "group_staging", .bytes = 4097});
    EXPECT_TRUE(absl::IsResourceExhausted(too_much.status()));
    EXPECT_TRUE(absl::StrContains(too_much.status().message(),
                                  "tier host: group_staging needs"))
        << too_much.status();
    EXPECT_TRUE(IsOfThisMachine(too_much.status())) << "others may have room";
  }
  EXPECT_EQ(arena.used(), 0u);
}

}  // namespace
}  // namespace troupe
