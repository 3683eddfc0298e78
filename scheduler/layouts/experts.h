// What the row of experts (experts.cc) does to other rows.
#ifndef TROUPE_SCHEDULER_LAYOUTS_EXPERTS_H_
#define TROUPE_SCHEDULER_LAYOUTS_EXPERTS_H_

#include "proto/plan/unit_list.h"

namespace troupe {

inline constexpr char kExpertField[] = "parallelism.expert";

// Gives columns within experts a kind of their own, EXPERT_INTERMEDIATE: an
// axis that has whole experts does not cut them, while it cuts those of dense
// layers.
void NameColumnsOfExperts(UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_EXPERTS_H_
