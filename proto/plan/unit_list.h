// The units of a model with their tables, as a plan lists them.
#ifndef TROUPE_PROTO_PLAN_UNIT_LIST_H_
#define TROUPE_PROTO_PLAN_UNIT_LIST_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan/batch.h"
#include "proto/plan/unit_builder.h"
#include "proto/unit.pb.h"

namespace troupe {

struct UnitList {
  // Adds the unit, with the bytes and the work that follow from its ops. Units
  // in a row that do the same share a table. Returns which output of the unit
  // each of the builder's became. InvalidArgument as TryPlaceUnit, and
  // where units read unlike tensors of the batch under one name.
  absl::StatusOr<std::vector<int>> TryAppend(UnitBuilder&& builder);
  // The same of what our own code builds: CHECKs.
  void Append(UnitBuilder&& builder);
  // One that computes nothing, and reads the one before.
  void AppendWithoutOps(Unit unit);

  // Of all units, the bytes and the work that follow from their tables, which
  // may have been changed, and how the batch is loaded for them.
  void Derive();

  BatchSchema batch;  // in the order in which units read it
  std::vector<UnitTable> tables;
  std::vector<Unit> units;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_UNIT_LIST_H_
