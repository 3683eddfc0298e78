// How long a file may be before it must be two. What is shorter is a matter of
// judgement: past 300 lines, or a function past 60, ask whether it is one idea.
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

constexpr size_t kLinesMax = 500;
constexpr size_t kMainLinesMax = 80;

TEST(Length, Files) {
  for (const SourceFile& file : ReadSourceTree()) {
    const bool main = absl::EndsWith(file.path, "/main.cc");
    EXPECT_LE(file.lines.size(), main ? kMainLinesMax : kLinesMax) << file.path;
  }
}

}  // namespace
}  // namespace troupe
