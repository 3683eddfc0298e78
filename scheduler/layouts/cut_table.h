// One table of a unit, cut along one axis of the mesh, with the exchanges that
// stand between its ops then (cut_units.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_
#define TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_

#include <map>
#include <vector>

#include "proto/plan/ops/op_rules.h"
#include "proto/unit.pb.h"
#include "scheduler/layouts/axis_rules.h"

namespace troupe {

// How the axis cuts a tensor where it may choose.
AxisCut WishFor(const AxisRules& axis, const TensorSpec& tensor);

// Whose rules say how a tensor that a unit shares with another lies between
// them, by the unit's inputs and outputs (proto/plan/ports.h). Of one that is
// not there, its own.
struct TableEnds {
  std::map<int, const AxisRules*> inputs;
  std::map<int, const AxisRules*> outputs;
  bool operator==(const TableEnds&) const = default;
};

struct CutTable {
  UnitTable table;
  // By op of the whole table: whether the gradients of its parameters that are
  // not cut are summands.
  std::vector<bool> sums_parameters;
};
// Where its own rules want its ends otherwise than they lie, an exchange stands
// in front of all ops, or behind them.
CutTable CutAlong(const AxisRules& axis, const TableEnds& ends,
                  const UnitTable& whole);

// The sections that the axis cuts.
void CutDim(const AxisRules& axis, Dim& dim);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_CUT_TABLE_H_
