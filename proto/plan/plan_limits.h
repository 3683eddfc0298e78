// How large a job, its plan and its cluster may be, in one place. A limit that
// a user can meet is refused by name, with the number and the way out; each is
// far above what somebody means and low enough that no job exhausts the
// scheduler. docs/plan.md lists them.
#ifndef TROUPE_PROTO_PLAN_PLAN_LIMITS_H_
#define TROUPE_PROTO_PLAN_PLAN_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"

namespace troupe {

// Ranks of a job: the product of its sizes.
inline constexpr int kRanksMax = 1 << 17;
// Its sizes. The number of replicas costs a plan next to nothing; the others
// lengthen programs or the tables of units.
inline constexpr int kDataMax = kRanksMax;
inline constexpr int kPipelineMax = 1024;
inline constexpr int kVirtualStagesMax = 64;
inline constexpr int kTensorMax = 1024;
inline constexpr int kContextMax = 1024;
inline constexpr int kBatchMax = 1024;
inline constexpr int kIslandsMax = 1024;

// Workers of one cluster that are registered at a time.
inline constexpr int kWorkersMax = 1 << 14;

// Passes of one unit over one micro-batch in a step, over the ranks of one
// pipeline.
inline constexpr int64_t kPassesMax = int64_t{1} << 18;
// Instructions of a plan's programs, over all roles. Planning needs up to 1.5
// KB for each at its peak (docs/performance.md).
inline constexpr int64_t kInstructionsMax = int64_t{1} << 20;
// The same of each of many plans that are compared; of longer ones shorter
// steps tell (scheduler/planner/short_steps.h).
inline constexpr int64_t kComparedInstructionsMax = kInstructionsMax / 16;

// The same of all plans that the scheduler makes at a time, together: longer
// ones wait for each other (scheduler/service/plan_budget.h). Each job counts
// with the longest of its plans, of which several are there where they are
// compared (scheduler/planner/planner.cc).
inline constexpr int64_t kInstructionsAtOnceMax = 2 * kInstructionsMax;

// Instructions that are simulated at a time, over all ranks that differ; about
// 100 bytes each.
inline constexpr int64_t kSimulatedInstructionsMax = int64_t{1} << 24;

// Spans of a predicted timeline, over all of its ranks: about 100 bytes each.
inline constexpr int64_t kTimelineSpansMax = int64_t{1} << 20;

// Sequences whose losses a job says one by one (JobSpec.sequence_losses): of a
// step, which rank 0 reports in one message; of a job, which the scheduler
// keeps; and the steps of such a job, none of which may be forgotten before it
// ends.
inline constexpr int64_t kStepSequencesMax = int64_t{1} << 16;
inline constexpr int64_t kSequenceLossesMax = int64_t{1} << 22;
inline constexpr int64_t kSequenceLossStepsMax = 20'000;

// How long the scheduler plans one job before it gives up: a client that waits
// for a plan waits longer, or never hears why there is none.
inline constexpr absl::Duration kPlanMax = absl::Minutes(10);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PLAN_LIMITS_H_
