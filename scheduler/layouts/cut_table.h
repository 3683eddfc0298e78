// One table of a unit, cut along one axis of the mesh, with the exchanges that
// stand between its ops then (cut_units.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_
#define TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_

#include <vector>

#include "proto/unit.pb.h"
#include "scheduler/layouts/axis_rules.h"

namespace troupe {

struct CutTable {
  UnitTable table;
  // By op of the whole table: whether the gradients of its parameters that are
  // not cut are summands.
  std::vector<bool> sums_parameters;
};
CutTable CutAlong(const AxisRules& axis, const UnitTable& whole);

// The sections that the axis cuts.
void CutDim(const AxisRules& axis, Dim& dim);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_
