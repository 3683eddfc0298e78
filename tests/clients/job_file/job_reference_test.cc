// docs/job.md against job.proto: every field has its row, every row its field.
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "clients/job_file/fill_message.h"
#include "gtest/gtest.h"
#include "proto/job.pb.h"

namespace troupe {
namespace {

// The first cell of each table row that is a path in backticks.
std::set<std::string> DocumentedPaths() {
  std::ifstream in("docs/job.md");
  EXPECT_TRUE(in.good());
  std::set<std::string> paths;
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    if (parts.size() < 3 || parts[0] != "| ") continue;
    EXPECT_TRUE(paths.insert(parts[1]).second) << parts[1] << " twice";
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 5) << line;
  }
  return paths;
}

TEST(JobReference, HasExactlyTheFieldsOfTheProto) {
  const std::vector<std::string> paths = FieldPaths(*JobSpec::descriptor());
  EXPECT_EQ(DocumentedPaths(),
            std::set<std::string>(paths.begin(), paths.end()));
}

}  // namespace
}  // namespace troupe
