// What every backend of communicators does when a member does not come, leaves
// or aborts: instantiate like CommunicatorContract, with FailingSizesOf.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_FAILURE_CONTRACT_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_FAILURE_CONTRACT_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {

class CommunicatorFailureContract
    : public testing::TestWithParam<RanksOptions> {
 protected:
  void SetUp() override {
    if (GetParam().why_not == nullptr) return;
    const std::string why_not = GetParam().why_not(GetParam().ranks);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
};

// Groups of 2 to 5: failures take a peer.
inline auto FailingSizesOf(const std::string& backend) {
  return testing::Values(RanksOptions{backend, 2}, RanksOptions{backend, 3},
                         RanksOptions{backend, 4}, RanksOptions{backend, 5});
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_FAILURE_CONTRACT_H_
