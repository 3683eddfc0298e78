// `troupe plan --explain`: which way of sharing its ranks suits a job on these
// workers, and why. Each way (ways.h) is planned and predicted as any job is,
// and predicted once more with links of twice the bandwidth, so what is said of
// links is what a step would take. One plan is in memory at a time, and each is
// bounded: of a way whose own is longer, two shorter steps tell
// (short_steps.h). Of those that lack memory, the quickest few are asked what
// would make them fit (remedies.h).
#ifndef TROUPE_SCHEDULER_PLANNER_EXPLAIN_H_
#define TROUPE_SCHEDULER_PLANNER_EXPLAIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "proto/plan/plan_limits.h"

namespace troupe {

// How many ways are planned; the others are counted.
inline constexpr int kWaysMax = 64;
// How many that lack memory, beside the job itself, are asked for remedies.
inline constexpr int kRemediedMax = 4;

// workers[r] is to fill rank r. InvalidArgument: the job is wrong on any
// workers, or no way can be planned, for the reason why the job as it is
// cannot. FailedPrecondition: too few workers. And what `may_go_on` says. Plans
// of more than `instructions_max` are told from shorter ones.
absl::StatusOr<Explanation> Explain(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on = {},
    int64_t instructions_max = kComparedInstructionsMax);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_EXPLAIN_H_
