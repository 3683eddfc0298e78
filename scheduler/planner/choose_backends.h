// What carries each group of a plan: memory, where its ranks share some, else
// sockets. Ranks share memory where their workers gave the same memory domain
// when they registered (WorkerDescription.memory_domain): the same host name
// would not do, as containers have names of their own, or all the same one.
#ifndef TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_
#define TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Sets the backend of every group: "shared_memory" or "gloo". workers[r] is to
// fill rank r.
void ChooseBackends(const std::vector<WorkerDescription>& workers, Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_CHOOSE_BACKENDS_H_
