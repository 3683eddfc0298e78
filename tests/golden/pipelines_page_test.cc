// docs/pipelines.md says what the schedules do now. To write the page anew:
//
//   TROUPE_DOCS_OUT=$PWD/docs bazel-bin/tests/golden/golden_test
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/scheduler/pipelines/page.h"

namespace troupe {
namespace {

std::string ReadPage() {
  std::stringstream text;
  text << std::ifstream("docs/pipelines.md").rdbuf();
  return text.str();
}

TEST(PipelinesPage, IsWhatTheSchedulesDo) {
  const std::string page = ReadPage();
  ASSERT_FALSE(page.empty());
  const std::string made = WithMadeParts(page);
  if (const char* const out = std::getenv("TROUPE_DOCS_OUT")) {
    std::ofstream(absl::StrCat(out, "/pipelines.md")) << made;
    return;
  }
  EXPECT_EQ(page, made);
}

TEST(PipelinesPage, HasEverySchedule) {
  const std::string page = ReadPage();
  for (const Pipeline& pipeline : Pipelines()) {
    EXPECT_NE(page.find(absl::StrCat("### `", pipeline.name, "`")),
              std::string::npos)
        << "docs/pipelines.md does not say what " << pipeline.name << " is";
  }
}

}  // namespace
}  // namespace troupe
