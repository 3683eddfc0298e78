// A YAML text (so JSON too) as a tree whose nodes know where they stand, so
// that every later complaint about the job file can say line and column.
//
//   ASSIGN_OR_RETURN(YamlNode root, ParseYaml(text, YamlSource{"job.yaml"}));
//
// yaml-cpp and its exceptions stay behind yaml_tree.cc. Aliases (`*name`) are
// expanded; tags other than `!!str` are refused, and so is whatever a job file
// never needs: several documents, depth or size beyond the limits below.
#ifndef TROUPE_CLIENTS_JOB_FILE_YAML_TREE_H_
#define TROUPE_CLIENTS_JOB_FILE_YAML_TREE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

inline constexpr int kYamlBytesMax = 1 << 20;  // of the text; a tree: twice
inline constexpr int kYamlNodesMax = 20000;
inline constexpr int kYamlDepthMax = 32;

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  std::string text;     // kScalar
  bool quoted = false;  // kScalar: written as text, never as a number
  int line = 1;         // 1-based, of the node's first character
  int column = 1;
  std::vector<YamlNode> keys;   // kMap, one for each of `items`
  std::vector<YamlNode> items;  // of a list, or the values of a map
};

// Whether it is UTF-8 without a zero byte, as YAML and protobuf want it.
bool IsUtf8(absl::string_view text);

// "the number 7", "a list", "nothing": for "expected ..., found ...".
std::string FoundText(const YamlNode& node);

// Where a YAML text comes from, for the front of messages.
struct YamlSource {
  std::string name;       // "job.yaml", "--set a.b"
  bool has_lines = true;  // whether a position in it helps people

  // "job.yaml:14:9" or "--set a.b".
  std::string At(const YamlNode& node) const;
  // InvalidArgument "<At(node)>: <what>".
  absl::Status Error(const YamlNode& node, absl::string_view what) const;
};

// InvalidArgument, with the place, for text that is no YAML document, holds a
// key twice in one map, or is past a limit. An empty text is a kNull node.
absl::StatusOr<YamlNode> ParseYaml(absl::string_view text,
                                   const YamlSource& source);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_JOB_FILE_YAML_TREE_H_
