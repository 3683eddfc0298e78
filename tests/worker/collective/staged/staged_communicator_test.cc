#include "worker/collective/staged/staged_communicator.h"

#include <memory>

#include "tests/ops/split_memory_device.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/operation_failure_contract.h"

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

}  // namespace
}  // namespace troupe
