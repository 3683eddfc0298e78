// How a job with `elastic` may run on fewer workers than it has ranks. All of
// these train the same model on the same batches, and each goes on from what
// any other saved.
#ifndef TROUPE_SCHEDULER_PLANNER_NARROWER_H_
#define TROUPE_SCHEDULER_PLANNER_NARROWER_H_

#include <vector>

#include "proto/job.pb.h"

namespace troupe {

// The most that are given.
inline constexpr int kNarrowerMax = 16;

// With at most `workers` ranks, fewer than the job's own, and at least
// elastic.min_workers: those with the most ranks first, and of these the ones
// that change least: other numbers of replicas, then shorter pipelines, then
// fewer ranks of each sequence (context) and of each unit (tensor). Where the
// batch does not divide, micro-batches are smaller; slices of ZeRO (zero_size)
// go over fewer ranks where they have to. None without `elastic`.
//
// Whether they fit is not asked. REQUIRES that ResolveJob takes the job, which
// need not be resolved.
std::vector<JobSpec> NarrowerWays(const JobSpec& job, int workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_NARROWER_H_
