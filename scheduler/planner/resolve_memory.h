// The `memory` section of a job (resolve.h).
#ifndef TROUPE_SCHEDULER_PLANNER_RESOLVE_MEMORY_H_
#define TROUPE_SCHEDULER_PLANNER_RESOLVE_MEMORY_H_

#include "absl/status/status.h"
#include "proto/job.pb.h"

namespace troupe {

// With mode `auto` only looks at what is given: the rest stays open until it is
// chosen by the budgets (fit_memory.h). REQUIRES a model that is resolved.
absl::Status ResolveMemory(const ModelSpec& model, MemorySpec& memory);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_RESOLVE_MEMORY_H_
