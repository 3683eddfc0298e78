#include "tests/style/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

std::vector<std::string> ReadLines(const std::filesystem::path& path) {
  std::ifstream in(path);
  CHECK(in.good()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool IsSource(const std::string& name) {
  return absl::EndsWith(name, ".h") || absl::EndsWith(name, ".cc") ||
         absl::EndsWith(name, ".cu") || absl::EndsWith(name, ".cuh");
}

}  // namespace

std::vector<SourceFile> ReadSourceTree() {
  const std::filesystem::path root =
      std::filesystem::canonical("WORKSPACE").parent_path();
  std::vector<SourceFile> files;
  for (const char* folder :
       {"disk", "proto", "ops", "storage", "scheduler", "worker", "clients", "tests"}) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() || !IsSource(entry.path().string()))
        continue;
      files.push_back({.path = std::filesystem::relative(entry.path(), root),
                       .lines = ReadLines(entry.path())});
    }
  }
  CHECK(files.size() > 20) << "the tree under " << root << " is not there";
  std::sort(
      files.begin(), files.end(),
      [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

std::set<std::string> Exceptions(const std::string& rule) {
  std::set<std::string> paths;
  bool here = false;
  for (const std::string& line : ReadLines("tests/style/exceptions.txt")) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] == '[') {
      here = line == absl::StrCat("[", rule, "]");
    } else if (here) {
      paths.insert(line);
    }
  }
  return paths;
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace troupe
