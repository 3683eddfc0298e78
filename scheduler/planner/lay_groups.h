// Which rank holds what, and which ranks communicate, once it is known which
// places of the pipeline compute which stages.
#ifndef TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_
#define TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_

#include "proto/plan.pb.h"

namespace troupe {

// Adds roles, one for each place on the pipeline, with their placements, and
// groups. REQUIRES mesh, units and stages.
//
// A role holds the units of its stages, and those that these are tied to.
// Ranks that hold the same of a part of a unit, or a summand of it, sum its
// gradients: data replicas, the two places of a stage that a schedule
// replicates, both ends of a pipeline whose embedding and head are tied,
// neighbours on the axis `tensor` of which each has a summand. "world" is all
// ranks; pipelines have a group for activations and one for their gradients,
// and axes that cut units one for what their units exchange.
void LayGroups(Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_
