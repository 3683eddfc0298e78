// Which folder may include which: docs/architecture.md, "Folders and floors".
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

// Our header that a line includes, or the system's in <...>; else "".
std::string IncludedBy(const std::string& line) {
  if (!absl::StartsWith(line, "#include ")) return "";
  const std::vector<std::string> parts =
      absl::StrSplit(line, absl::ByAnyChar("\"<>"));
  return parts.size() > 1 ? parts[1] : "";
}

std::string FloorOf(const std::string& path) {
  for (const char* floor : {"proto/base", "storage/disk", "proto/trust"}) {
    if (absl::StartsWith(path, absl::StrCat(floor, "/"))) return floor;
  }
  for (const char* floor :
       {"proto", "ops", "storage", "scheduler", "worker", "clients", "tests"}) {
    if (absl::StartsWith(path, absl::StrCat(floor, "/"))) return floor;
  }
  return "";
}

TEST(Floors, IncludesGoDownOnly) {
  const std::map<std::string, std::set<std::string>> allowed = {
      {"proto/base", {}},
      {"storage/disk", {"proto/base"}},
      {"proto/trust", {"proto/base", "storage/disk"}},
      {"proto", {"proto/base"}},
      {"ops", {"proto/base"}},
      {"storage", {"proto/base", "storage/disk"}},
      {"scheduler", {"proto", "proto/base", "storage/disk", "proto/trust"}},
      {"worker",
       {"proto", "proto/base", "storage/disk", "proto/trust", "ops", "storage"}},
      {"clients", {"proto", "proto/base", "storage/disk", "proto/trust", "storage"}},
  };
  for (const SourceFile& file : ReadSourceTree()) {
    const std::string from = FloorOf(file.path);
    if (from == "tests") continue;
    for (const std::string& line : file.lines) {
      const std::string to = FloorOf(IncludedBy(line));
      EXPECT_TRUE(to.empty() || to == from || allowed.at(from).count(to) > 0)
          << file.path << " must not use " << to << ": " << line;
    }
  }
}

TEST(Floors, EachLibraryIsSeenInItsOnePlace) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> homes = {
      {"grpcpp/",
       {"scheduler/service/", "worker/service/", "clients/cpp/", "proto/trust/grpc/",
        "tests/"}},
      {"openssl/", {"proto/trust/", "tests/"}},
      {"liburing", {"storage/engine/"}},
      {"gloo/", {"worker/collective/gloo/", "tests/bench/"}},
      {"sqlite3", {"scheduler/store/"}},
      {"httplib", {"scheduler/status/", "tests/"}},
      {"prometheus/", {"scheduler/status/"}},
      {"yaml-cpp/", {"clients/"}},
      {"dnnl", {"ops/cpu/", "tests/bench/", "tests/ops/cpu/"}},
      {"cuda", {"ops/cuda/", "worker/collective/nccl/"}},
      {"nccl", {"worker/collective/nccl/"}},
      {"spdlog/", {"proto/base/"}},
  };
  for (const SourceFile& file : ReadSourceTree()) {
    for (const std::string& line : file.lines) {
      const std::string header = IncludedBy(line);
      if (!FloorOf(header).empty()) continue;
      for (const auto& [library, folders] : homes) {
        if (!absl::StartsWith(header, library)) continue;
        bool home = false;
        for (const std::string& folder : folders) {
          home = home || absl::StartsWith(file.path, folder);
        }
        EXPECT_TRUE(home) << file.path << " must not use " << header;
      }
    }
  }
}

using Graph = std::map<std::string, std::set<std::string>>;

// The first cycle found from `folder`, as "a -> b -> a"; "" if there is none.
std::string CycleFrom(const Graph& graph, const std::string& folder,
                      std::vector<std::string>& path,
                      std::set<std::string>& clean) {
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != folder) continue;
    std::string cycle;
    for (; i < path.size(); ++i) absl::StrAppend(&cycle, path[i], " -> ");
    return cycle + folder;
  }
  if (clean.count(folder) > 0 || graph.count(folder) == 0) return "";
  path.push_back(folder);
  for (const std::string& next : graph.at(folder)) {
    const std::string cycle = CycleFrom(graph, next, path, clean);
    if (!cycle.empty()) return cycle;
  }
  path.pop_back();
  clean.insert(folder);
  return "";
}

// A folder "x/cpu" and its parent "x" are one place: the parent holds the
// contract and the table that lists its children.
TEST(Floors, FoldersHaveNoCycles) {
  Graph graph;
  for (const SourceFile& file : ReadSourceTree()) {
    if (FloorOf(file.path) == "tests") continue;
    const std::string from = FolderOf(file.path);
    for (const std::string& line : file.lines) {
      const std::string to = FolderOf(IncludedBy(line));
      if (FloorOf(to + "/").empty() || to == from) continue;
      if (absl::StartsWith(to, from + "/")) continue;
      if (absl::StartsWith(from, to + "/")) continue;
      graph[from].insert(to);
    }
  }
  std::set<std::string> clean;
  for (const auto& [folder, unused] : graph) {
    std::vector<std::string> path;
    EXPECT_EQ(CycleFrom(graph, folder, path, clean), "");
  }
}

}  // namespace
}  // namespace troupe
