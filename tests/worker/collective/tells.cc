#include "tests/worker/collective/tells.h"

#include "absl/strings/match.h"

namespace troupe {

testing::AssertionResult Tells(const absl::Status& status,
                               absl::StatusCode code,
                               const std::vector<std::string>& words) {
  if (status.code() != code) {
    return testing::AssertionFailure()
           << status << " is not " << absl::StatusCodeToString(code);
  }
  if (!absl::StrContains(status.message(), "group test-group")) {
    return testing::AssertionFailure() << status << " does not name the group";
  }
  for (const std::string& word : words) {
    if (!absl::StrContains(status.message(), word)) {
      return testing::AssertionFailure()
             << "\"" << status << "\" does not say \"" << word << "\"";
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace troupe
