// Which units of a model do the same. A search asks what a unit costs under
// hundreds of layouts; the blocks of a model are most often all of one kind, so
// a model with one unit of each kind tells of all of them.
#ifndef TROUPE_SCHEDULER_PLANNER_UNIT_KINDS_H_
#define TROUPE_SCHEDULER_PLANNER_UNIT_KINDS_H_

#include <vector>

#include "proto/plan/unit_list.h"

namespace troupe {

// By unit: the place of its kind in the list that OneOfEachKind leaves. Units
// of one kind have equal tables, and parameters that are equal but for their
// names and initial values. Kinds stand in the order of their first units.
// Where units are not a chain, in which each reads the one output of the unit
// before, every unit is a kind of its own.
std::vector<int> KindOfUnits(const UnitList& units);

// Leaves the first unit of each kind, each reading the one before. `kinds` as
// KindOfUnits returns them.
void KeepOneOfEachKind(const std::vector<int>& kinds, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_UNIT_KINDS_H_
