// A table as text, for tests that look at what becomes of it.
#ifndef TROUPE_TESTS_SCHEDULER_LAYOUTS_TABLE_LINES_H_
#define TROUPE_TESTS_SCHEDULER_LAYOUTS_TABLE_LINES_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/layout.h"
#include "proto/plan/tensor_spec.h"
#include "proto/unit.pb.h"

namespace troupe {

// One op a line: its kind, and what it makes, as sizes and layout.
inline std::vector<std::string> Lines(const UnitTable& table) {
  std::vector<std::string> lines;
  for (const Op& op : table.ops()) {
    std::string line = Op::Kind_Name(op.kind());
    if (op.kind() == Op::EXCHANGE) {
      line = absl::StrCat(op.exchange().forward() == COLLECTIVE_UNSPECIFIED
                              ? "-"
                              : Collective_Name(op.exchange().forward()),
                          " / ",
                          op.exchange().backward() == COLLECTIVE_UNSPECIFIED
                              ? "-"
                              : Collective_Name(op.exchange().backward()));
    }
    if (!op.outputs().empty()) {
      const TensorSpec& made = table.tensors(op.outputs(0).tensor());
      absl::StrAppend(&line, " [", absl::StrJoin(DimsOf(made), ", "), "] ",
                      LayoutText(made.layout()));
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_LAYOUTS_TABLE_LINES_H_
