// All ways there are to carry out an exchange over a group. What a row is, says
// row.h; what each is good for, docs/collectives.md.
//
// To add one: docs/how_to_add/collective_row.md.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_COLLECTIVES_H_
#define TROUPE_SCHEDULER_COLLECTIVES_COLLECTIVES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// In the order in which they are tried: of two that are equally fast the first
// is taken. kFlatRow (proto/plan/ways.h), which any group can do, is one.
const std::vector<CollectiveRow>& CollectiveRows();

// InvalidArgument lists the names there are.
absl::StatusOr<CollectiveRow> FindCollectiveRow(absl::string_view name);

// What the row lays, its error otherwise. CHECKs what a row promises of what it
// lays: steps only over its own levels, and one choice of pieces or more.
absl::StatusOr<LaidWay> LayRow(const CollectiveRow& row,
                               const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_COLLECTIVES_H_
