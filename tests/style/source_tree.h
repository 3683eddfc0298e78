// The source tree as the style tests see it: every C++ file and every page of
// the documentation with its lines.
#ifndef TROUPE_TESTS_STYLE_SOURCE_TREE_H_
#define TROUPE_TESTS_STYLE_SOURCE_TREE_H_

#include <set>
#include <string>
#include <vector>

namespace troupe {

struct SourceFile {
  std::string path;  // from the repository's root: "proto/plan/mesh.cc"
  std::vector<std::string> lines;
};

// All .h, .cc, .cu and .cuh files of our folders, tests included, sorted by
// path. The root is found through the WORKSPACE file among the test's data.
std::vector<SourceFile> ReadSourceTree();

// README.md and all pages of docs/, sorted by path.
std::vector<SourceFile> ReadPages();

// Paths of tests/style/exceptions.txt under the heading "[rule]". Each must
// still be needed: the list only shrinks.
std::set<std::string> Exceptions(const std::string& rule);

// The folder of a path, "" at the root.
std::string FolderOf(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_TESTS_STYLE_SOURCE_TREE_H_
