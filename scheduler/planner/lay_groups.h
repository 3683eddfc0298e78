// Who holds what, and who communicates with whom, once it is known which ranks
// compute which stages.
#ifndef TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_
#define TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_

#include "proto/plan.pb.h"

namespace troupe {

// Adds placements and groups. REQUIRES mesh, units, stages and an empty
// RankPlan for each rank.
//
// A rank holds the units of its stages, and those that these are tied to. The
// ranks of all pipelines that hold a unit sum its gradients: data replicas, the
// two ranks of a stage that a schedule replicates, both ends of a pipeline
// whose embedding and head are tied. Without a pipeline there is one group, of
// all ranks; with one, "world" is a group of all ranks too, and each pipeline
// has a group for activations and one for their gradients.
void LayGroups(Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_LAY_GROUPS_H_
