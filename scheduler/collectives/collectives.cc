#include "scheduler/collectives/collectives.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/base/check.h"
#include "proto/base/status.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/blueconnect.h"
#include "scheduler/collectives/flat.h"
#include "scheduler/collectives/halving.h"
#include "scheduler/collectives/tree.h"
#include "scheduler/collectives/two_level.h"

namespace troupe {

const std::vector<CollectiveRow>& CollectiveRows() {
  static const std::vector<CollectiveRow>& rows =
      *new std::vector<CollectiveRow>{
          {.name = kFlatRow,
           .summary = "one communicator of all members",
           .lay = LayFlat},
          {.name = "two_level",
           .summary = "within each host, then between members of different "
                      "hosts",
           .lay = LayTwoLevel},
          {.name = "blueconnect",
           .summary = "the same in pieces, on all levels at once",
           .lay = LayBlueConnect},
          {.name = "halving",
           .summary = "halves exchanged with partners at growing distances",
           .lay = LayHalving},
          {.name = "tree",
           .summary = "whole sums up a tree, and down again",
           .lay = LayTree},
      };
  return rows;
}

absl::StatusOr<CollectiveRow> FindCollectiveRow(absl::string_view name) {
  for (const CollectiveRow& row : CollectiveRows()) {
    if (row.name == name) return row;
  }
  const auto append = [](std::string* out, const CollectiveRow& row) {
    absl::StrAppend(out, row.name);
  };
  return absl::InvalidArgumentError(
      absl::StrCat("\"", name, "\" is unknown; there are ",
                   absl::StrJoin(CollectiveRows(), ", ", append)));
}

absl::StatusOr<LaidWay> LayRow(const CollectiveRow& row,
                               const GroupExchange& exchange) {
  ASSIGN_OR_RETURN(LaidWay way, row.lay(exchange));
  CHECK(!way.pieces.empty()) << row.name;
  for (const Group::Step& step : way.steps) {
    CHECK(step.level() >= 0 &&
          step.level() < static_cast<int>(way.levels.size()))
        << row.name << " has a step on level " << step.level();
  }
  return way;
}

}  // namespace troupe
