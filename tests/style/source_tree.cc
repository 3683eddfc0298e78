#include "tests/style/source_tree.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

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

std::filesystem::path Root() {
  return std::filesystem::canonical("WORKSPACE").parent_path();
}

// All files of folders of the root with one of the endings, sorted by path.
std::vector<SourceFile> ReadFiles(const std::vector<std::string>& folders,
                                  const std::set<std::string>& endings) {
  const std::filesystem::path root = Root();
  std::vector<SourceFile> files;
  for (const std::string& folder : folders) {
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file() ||
          endings.count(entry.path().extension().string()) == 0) {
        continue;
      }
      files.push_back({.path = std::filesystem::relative(entry.path(), root),
                       .lines = ReadLines(entry.path())});
    }
  }
  std::sort(
      files.begin(), files.end(),
      [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

}  // namespace

std::vector<SourceFile> ReadSourceTree() {
  std::vector<SourceFile> files = ReadFiles(
      {"proto", "ops", "storage", "scheduler", "worker", "clients", "tests"},
      {".h", ".cc", ".cu", ".cuh"});
  CHECK(files.size() > 20) << "the source tree is not there";
  return files;
}

std::vector<SourceFile> ReadPages() {
  std::vector<SourceFile> pages = ReadFiles({"docs"}, {".md"});
  CHECK(!pages.empty()) << "the pages of docs/ are not there";
  pages.push_back(
      {.path = "README.md", .lines = ReadLines(Root() / "README.md")});
  return pages;
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
