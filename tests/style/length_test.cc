// How long files and functions may be. What is longer is in exceptions.txt,
// which only shrinks: an entry that is no longer needed fails too.
#include <cctype>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

constexpr size_t kHeaderLinesMax = 150;
constexpr size_t kSourceLinesMax = 300;
constexpr size_t kMainLinesMax = 80;
constexpr size_t kFunctionLinesMax = 60;

size_t LinesMax(const std::string& path) {
  if (absl::EndsWith(path, "/main.cc")) return kMainLinesMax;
  const bool header =
      absl::EndsWith(path, ".h") || absl::EndsWith(path, ".cuh");
  return header ? kHeaderLinesMax : kSourceLinesMax;
}

// Compares what breaks a rule with the list of what may.
void ExpectExactly(const std::set<std::string>& broken,
                   const std::string& rule) {
  const std::set<std::string> allowed = Exceptions(rule);
  for (const std::string& entry : broken) {
    EXPECT_TRUE(allowed.count(entry) > 0) << rule << ": " << entry;
  }
  for (const std::string& entry : allowed) {
    EXPECT_TRUE(broken.count(entry) > 0)
        << rule << ": take " << entry << " off tests/style/exceptions.txt";
  }
}

TEST(Length, Files) {
  std::set<std::string> broken;
  for (const SourceFile& file : ReadSourceTree()) {
    if (file.lines.size() > LinesMax(file.path)) broken.insert(file.path);
  }
  ExpectExactly(broken, "long files");
}

// Functions of clang-formatted code start and end in column 0; those of CUDA
// may start with __device__.
TEST(Length, Functions) {
  std::set<std::string> broken;
  for (const SourceFile& file : ReadSourceTree()) {
    size_t start = 0;
    for (size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (line == "}" && i - start + 1 > kFunctionLinesMax) {
        broken.insert(absl::StrCat(file.path, ": ", file.lines[start]));
      }
      const bool starts =
          !line.empty() &&
          (std::isalpha(line[0]) != 0 || line[0] == '~' || line[0] == '_') &&
          !absl::StartsWith(line, "namespace");
      if (starts) start = i;
    }
  }
  ExpectExactly(broken, "long functions");
}

}  // namespace
}  // namespace troupe
