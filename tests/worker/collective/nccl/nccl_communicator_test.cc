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

RanksOptions Gpus(int ranks, bool meet) {
  return {.backend = "nccl",
          .ranks = ranks,
          .meet = meet,
          .rounds_once = false,
          .new_device = NewGpu,
          .why_not = WhyNot};
}

INSTANTIATE_TEST_SUITE_P(Met, CommunicatorContract,
                         testing::Values(Gpus(2, true), Gpus(3, true)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Unmet, CommunicatorContract,
                         testing::Values(Gpus(1, false), Gpus(2, false),
                                         Gpus(3, false), Gpus(4, false)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Met, CommunicatorFailureContract,
                         testing::Values(Gpus(2, true), Gpus(4, true)),
                         RanksName);
INSTANTIATE_TEST_SUITE_P(Met, OperationFailureContract,
                         testing::Values(Gpus(3, true)), RanksName);

}  // namespace
}  // namespace troupe
