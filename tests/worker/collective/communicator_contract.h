// What every backend of communicators does when all is well. A backend's test
// includes this file and instantiates the suite:
//
//   INSTANTIATE_TEST_SUITE_P(Gloo, CommunicatorContract,
//                            EachSizeOf("gloo"), RanksName);
//
// communicator_failure_contract.h has what they do when it is not.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_CONTRACT_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_CONTRACT_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/worker/collective/ranks.h"

namespace troupe {

class CommunicatorContract : public testing::TestWithParam<RanksOptions> {
 protected:
  void SetUp() override {
    if (GetParam().why_not == nullptr) return;
    const std::string why_not = GetParam().why_not(GetParam().ranks);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
};

// Groups of 1 to 5.
inline auto EachSizeOf(const std::string& backend) {
  return testing::Values(RanksOptions{backend, 1}, RanksOptions{backend, 2},
                         RanksOptions{backend, 3}, RanksOptions{backend, 4},
                         RanksOptions{backend, 5});
}

inline std::string RanksName(const testing::TestParamInfo<RanksOptions>& info) {
  return "Ranks" + std::to_string(info.param.ranks);
}

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_COMMUNICATOR_CONTRACT_H_
