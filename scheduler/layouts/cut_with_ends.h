// The units of one strategy, cut by its rules, where what they share with
// neighbours may lie as these want it (unit_rules.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_CUT_WITH_ENDS_H_
#define TROUPE_SCHEDULER_LAYOUTS_CUT_WITH_ENDS_H_

#include <map>
#include <string>
#include <vector>

#include "proto/plan/unit_list.h"
#include "scheduler/layouts/axis_rules.h"
#include "scheduler/layouts/cut_table.h"

namespace troupe {

// Whose rules say how a table's ends lie, by axis; not there: its own.
using Ends = std::map<std::string, TableEnds>;

// As CutUnits, but bytes and work do not follow yet. `ends`: by table.
void CutWithEnds(const std::vector<AxisRules>& axes,
                 const std::vector<Ends>& ends, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_CUT_WITH_ENDS_H_
