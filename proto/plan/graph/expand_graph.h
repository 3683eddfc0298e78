// The units of a model graph one by one: repeated ones as often as they are
// there, with their own names, and which tensors of others each reads.
#ifndef TROUPE_PROTO_PLAN_GRAPH_EXPAND_GRAPH_H_
#define TROUPE_PROTO_PLAN_GRAPH_EXPAND_GRAPH_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/graph.pb.h"
#include "proto/plan/graph/graph_text.h"

namespace troupe {

struct GraphRead {
  std::string text;    // as the op has it, "before:h"
  int unit = 0;        // that makes it
  std::string tensor;  // there
  int line = 0;        // of the op
};

// A tensor of a unit that another one reads.
struct GraphExport {
  std::string tensor;
  int reader = 0;  // unit
  int line = 0;    // of the op that reads it
};

struct ExpandedUnit {
  std::string name;
  int copy = 0;  // which of the repeated ones
  int copies = 1;
  int line = 0;
  std::vector<GraphOp> ops;          // with names of this copy
  std::vector<int> lines;            // by op
  std::vector<GraphRead> reads;      // each tensor once for each text
  std::vector<GraphExport> exports;  // in the order of the readers
};

// InvalidArgument with the line: names that are missing, or there twice,
// tensors of units that do not come before, and graphs that are too large.
absl::StatusOr<std::vector<ExpandedUnit>> ExpandGraph(const GraphText& text);

// "linear": the kind of an op as a graph names it; empty: it has none.
std::string KindName(const GraphOp& op);
// "op linear of unit block.0".
std::string OpWords(const GraphOp& op, const ExpandedUnit& unit);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_GRAPH_EXPAND_GRAPH_H_
