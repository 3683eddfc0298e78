// tests/ mirrors the tree: what a folder promises is tested in the same folder
// of tests/, and a folder of tests tests something that is there.
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

// Folders of tests/ that stand for themselves.
bool StandsAlone(const std::string& folder) {
  for (const char* name :
       {"bench", "browser", "cluster", "compatibility", "equivalence", "faults",
        "fuzz", "golden", "oracle", "style"}) {
    const std::string path = absl::StrCat("tests/", name);
    if (folder == path || absl::StartsWith(folder, path + "/")) return true;
  }
  return false;
}

// The folders of files that end so, those of tests/ or those of the rest.
std::set<std::string> Folders(const std::string& ending, bool tests) {
  std::set<std::string> folders;
  for (const SourceFile& file : ReadSourceTree()) {
    if (absl::EndsWith(file.path, ending) &&
        absl::StartsWith(file.path, "tests/") == tests &&
        !absl::EndsWith(file.path, "/main.cc")) {
      folders.insert(FolderOf(file.path));
    }
  }
  return folders;
}

TEST(Mirror, EveryFolderHasItsTests) {
  const std::set<std::string> tests = Folders("_test.cc", true);
  const std::set<std::string> elsewhere = Exceptions("tested elsewhere");
  const std::set<std::string> sources = Folders(".cc", false);
  for (const std::string& folder : sources) {
    const bool tested = tests.count(absl::StrCat("tests/", folder)) > 0;
    EXPECT_NE(tested, elsewhere.count(folder) > 0)
        << (tested ? "take off tests/style/exceptions.txt: " : "no tests for ")
        << folder;
  }
  for (const std::string& folder : elsewhere) {
    EXPECT_EQ(sources.count(folder), 1) << "no such folder: " << folder;
  }
}

TEST(Mirror, EveryFolderOfTestsTestsSomething) {
  std::set<std::string> subjects = Folders(".cc", false);
  subjects.merge(Folders(".h", false));
  for (const std::string& folder : Folders("_test.cc", true)) {
    const std::string subject = folder.substr(std::string("tests/").size());
    EXPECT_TRUE(StandsAlone(folder) || subjects.count(subject) > 0)
        << folder << " has no subject";
  }
}

}  // namespace
}  // namespace troupe
