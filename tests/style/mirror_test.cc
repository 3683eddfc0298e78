// tests/ mirrors the tree: <path>/<file>.cc has tests/<path>/<file>_test.cc,
// and a test tests something that is there.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

std::string WithoutEnding(const std::string& path) {
  return path.substr(0, path.rfind('.'));
}

// Folders of tests/ that stand for themselves.
bool StandsAlone(const std::string& path) {
  for (const char* folder :
       {"tests/golden/", "tests/equivalence/", "tests/cluster/",
        "tests/faults/", "tests/oracle/", "tests/bench/", "tests/browser/",
        "tests/style/"}) {
    if (absl::StartsWith(path, folder)) return true;
  }
  return false;
}

std::set<std::string> AllPaths() {
  std::set<std::string> paths;
  for (const SourceFile& file : ReadSourceTree()) paths.insert(file.path);
  return paths;
}

TEST(Mirror, EverySourceHasItsTest) {
  const std::set<std::string> paths = AllPaths();
  const std::set<std::string> allowed = Exceptions("tested elsewhere");
  for (const std::string& path : paths) {
    if (absl::StartsWith(path, "tests/") || !absl::EndsWith(path, ".cc") ||
        absl::EndsWith(path, "main.cc")) {
      continue;
    }
    const bool tested = paths.count(absl::StrCat("tests/", WithoutEnding(path),
                                                 "_test.cc")) > 0;
    EXPECT_NE(tested, allowed.count(path) > 0)
        << (tested ? "take off tests/style/exceptions.txt: " : "no test for ")
        << path;
  }
  for (const std::string& path : allowed) {
    EXPECT_TRUE(paths.count(path) > 0) << "no such file: " << path;
  }
}

TEST(Mirror, EveryTestTestsSomething) {
  const std::set<std::string> paths = AllPaths();
  for (const std::string& path : paths) {
    if (!absl::EndsWith(path, "_test.cc") || StandsAlone(path)) continue;
    const std::string subject =
        path.substr(6, path.size() - 6 - std::string("_test.cc").size());
    EXPECT_TRUE(paths.count(subject + ".cc") > 0 ||
                paths.count(subject + ".h") > 0)
        << path << " has no subject";
  }
}

}  // namespace
}  // namespace troupe
