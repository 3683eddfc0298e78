#include "scheduler/collectives/collectives.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/plan/ways.h"
#include "scheduler/collectives/blueconnect.h"
#include "scheduler/collectives/flat.h"
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

}  // namespace troupe
