// How long a plan's programs will be, counted before they are built. A plan has
// an instruction for each segment of each unit, micro-batch and pass: a few in
// plain data parallelism, dozens where sequences travel in a ring or units are
// cut in two or three dimensions. Their number is what planning needs time and
// memory for, so it is bounded here, whatever it follows from.
#ifndef TROUPE_SCHEDULER_PLANNER_PLAN_SIZE_H_
#define TROUPE_SCHEDULER_PLANNER_PLAN_SIZE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "scheduler/passes/draft.h"

namespace troupe {

// Instructions that compute or exchange, over the roles of one pipeline. What
// passes add (transfers, gathers, moves between tiers) is at most a few for
// each unit and micro-batch.
struct PlanSize {
  int64_t micro_batch = 0;             // forward, recomputation and backward
  int64_t validation_micro_batch = 0;  // forward only
  int64_t train = 0;                   // the TRAIN program of all roles
  int64_t validate = 0;                // VALIDATE
  int64_t fill = 0;                    // FILL
  int64_t total() const { return train + validate + fill; }
};

// REQUIRES what StartDraft returns.
PlanSize PlanSizeOf(const Draft& draft);

// InvalidArgument, beginning with the path of a field that makes it so long and
// naming the way out: more than `instructions_max` (plan_limits.h).
// `size` is the draft's.
absl::Status CheckPlanSize(const Draft& draft, const PlanSize& size,
                           int64_t instructions_max);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_PLAN_SIZE_H_
