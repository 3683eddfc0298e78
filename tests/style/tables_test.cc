// Tables of the documentation: each row belongs to a table with a heading. A
// blank line in a table makes the rows after it plain text.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

TEST(Tables, NoneIsCutInTwo) {
  for (const SourceFile& page : ReadPages()) {
    const std::vector<std::string>& lines = page.lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool row = absl::StartsWith(lines[i], "|");
      const bool first = i == 0 || !absl::StartsWith(lines[i - 1], "|");
      if (!row || !first) continue;
      EXPECT_TRUE(i + 1 < lines.size() &&
                  absl::StartsWith(lines[i + 1], "|---"))
          << page.path << ":" << i + 1 << ": a row without a heading";
    }
  }
}

}  // namespace
}  // namespace troupe
