// What a model graph (docs/graph.md) cannot be combined with yet.
#ifndef TROUPE_SCHEDULER_PLANNER_CHECK_GRAPH_H_
#define TROUPE_SCHEDULER_PLANNER_CHECK_GRAPH_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// Whether every unit reads what the one before makes for it, and nothing else.
bool IsChain(const UnitList& units);

// InvalidArgument with the field's path and the reason. REQUIRES the units of
// the job's model, not cut.
absl::Status CheckGraph(const JobSpec& job, const UnitList& units);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHECK_GRAPH_H_
