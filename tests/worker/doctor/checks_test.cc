#include "worker/doctor/checks.h"

#include <set>

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(AllChecks, HaveTheirOwnNamesAndAnswers) {
  const CheckSubject subject = {.state_dir = testing::TempDir()};
  std::set<std::string> names;
  for (const Check& check : AllChecks()) {
    EXPECT_TRUE(names.insert(check.name).second) << check.name << " twice";
    EXPECT_LE(check.name.size(), 17) << "wider than its column";
    const Finding finding = check.run(subject);
    EXPECT_FALSE(finding.text.empty()) << check.name;
    const bool is_bad = finding.state == FindingState::kWarn ||
                        finding.state == FindingState::kFail;
    EXPECT_TRUE(!is_bad || !finding.advice.empty())
        << check.name << " does not say what to do: " << finding.text;
  }
  EXPECT_EQ(names.size(), 18);
}

}  // namespace
}  // namespace troupe
