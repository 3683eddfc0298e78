#include "worker/collective/nccl/nccl_communicator.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "ops/cuda/device.h"
#include "tests/worker/collective/communicator_contract.h"
#include "tests/worker/collective/communicator_failure_contract.h"
#include "tests/worker/collective/operation_failure_contract.h"

namespace troupe {
namespace {

std::unique_ptr<Device> NewGpu(int index) {
  return NewCudaDevice({.ordinal = index}).value();
}

std::string WhyNot(int ranks) {
  for (int i = 0; i < ranks; ++i) {
    const absl::Status there = NewCudaDevice({.ordinal = i}).status();
    if (there.ok()) continue;
    return absl::StrCat(ranks, " ranks want a GPU each, but of GPU ", i, ": ",
                        there.message());
  }
  return "";
}

RanksOptions Gpus(int ranks) {
  return {.backend = "nccl",
          .ranks = ranks,
          .new_device = NewGpu,
          .why_not = WhyNot};
}

INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorContract,
                         testing::Values(Gpus(1), Gpus(2), Gpus(3), Gpus(4)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Nccl, CommunicatorFailureContract,
                         testing::Values(Gpus(2), Gpus(4)), RanksName);
INSTANTIATE_TEST_SUITE_P(Nccl, OperationFailureContract,
                         testing::Values(Gpus(3)), RanksName);

}  // namespace
}  // namespace troupe
