// What every operation of every backend does when a member does not come, dies
// or aborts while it is under way: instantiate like
// CommunicatorFailureContract, with ThreeOf, or more members where a backend
// has more lanes then.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_OPERATION_FAILURE_CONTRACT_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_OPERATION_FAILURE_CONTRACT_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {

class OperationFailureContract : public testing::TestWithParam<RanksOptions> {
 protected:
  void SetUp() override {
    if (GetParam().why_not == nullptr) return;
    const std::string why_not = GetParam().why_not(GetParam().ranks);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
};

// One that fails, one that waits for it, and one that may wait for either.
inline auto ThreeOf(const std::string& backend) {
  return testing::Values(RanksOptions{backend, 3});
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_OPERATION_FAILURE_CONTRACT_H_
