// Units that are cut by rules of their own: what the ranks of a stage do for
// some of them is not what they do for others (proto/plan/strategies.h). Each
// is cut as cut_units.h says; what two units hand on, and want otherwise, is
// turned at the end of one of them.
#ifndef TROUPE_SCHEDULER_LAYOUTS_UNIT_RULES_H_
#define TROUPE_SCHEDULER_LAYOUTS_UNIT_RULES_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"
#include "scheduler/layouts/axis_rules.h"

namespace troupe {

// What ranks do for each unit.
struct UnitRules {
  std::vector<std::vector<AxisRules>> strategies;
  std::vector<int> of_unit;  // which of them
};

// `of_unit`: by unit the strategy that holds, an index into
// parallelism.strategies, or -1 (proto/plan/strategies.h).
UnitRules RulesByUnit(const ParallelismSpec& parallelism,
                      const std::vector<int>& of_unit);

// CheckCuts of the units of each strategy.
absl::Status CheckCuts(const UnitRules& rules, const UnitList& units);

// The same where units are cut by rules of their own. What a unit makes lies as
// the next one reads it, or as it makes it where that is less, and the other of
// the two turns it: so units that disagree have a table of their own, with one
// more exchange at that end. REQUIRES CheckCuts of each strategy.
//
// InvalidArgument "parallelism.strategies: ...": no exchange turns one into the
// other, units that share a parameter do not share it out alike, or those that
// read the batch want to load it differently.
absl::Status CutUnits(const UnitRules& rules, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_UNIT_RULES_H_
