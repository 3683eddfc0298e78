// Looks into the errors of communicators.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_TELLS_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_TELLS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace troupe {

// The status has the code `code` and says the group of TestSeat (ranks.h) and
// each of `words`.
testing::AssertionResult Tells(const absl::Status& status,
                               absl::StatusCode code,
                               const std::vector<std::string>& words);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_TELLS_H_
