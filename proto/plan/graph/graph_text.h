// The text of a model graph (proto/graph.proto, docs/graph.md), and where in it
// each unit and each op stands, for messages.
#ifndef TROUPE_PROTO_PLAN_GRAPH_GRAPH_TEXT_H_
#define TROUPE_PROTO_PLAN_GRAPH_GRAPH_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/graph.pb.h"

namespace troupe {

// Longer ones are refused: jobs carry them.
inline constexpr int64_t kGraphBytesMax = int64_t{1} << 20;

struct GraphText {
  // InvalidArgument "NAME:12: what", at a line of the text; 0: of all of it.
  absl::Status Error(int line, absl::string_view what) const;

  std::string name;  // of the file
  ModelGraph graph;
  std::vector<int> batch_lines;            // by GraphBatch, from 1
  std::vector<int> unit_lines;             // by GraphUnit
  std::vector<std::vector<int>> op_lines;  // and by op
};

// Of untrusted text: InvalidArgument as above where it is no ModelGraph, and
// says what is wrong at which line.
absl::StatusOr<GraphText> ParseGraphText(absl::string_view name,
                                         const std::string& text);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_GRAPH_TEXT_H_
