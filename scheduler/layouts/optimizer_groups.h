// optimizer.groups: that each group has parameters, and what its weight decay
// is of. Which rule a parameter has follows from its name
// (proto/plan/optimizer_rules.h); the units' parts say so (lay_parts.h).
#ifndef TROUPE_SCHEDULER_LAYOUTS_OPTIMIZER_GROUPS_H_
#define TROUPE_SCHEDULER_LAYOUTS_OPTIMIZER_GROUPS_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Sets Parameter.weight_decay of those whose group says how much.
// InvalidArgument "optimizer.groups[1].match: ..." where a pattern matches
// nothing, or where later groups have all that a group matches. REQUIRES a
// resolved spec.
absl::Status MarkGroups(const OptimizerSpec& optimizer, UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_OPTIMIZER_GROUPS_H_
