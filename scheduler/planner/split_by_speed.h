// parallelism.micro_batch_split: by_speed. A replica takes as long for a
// micro-batch as the rank of its pipeline that takes longest; replicas get as
// many micro-batches as make the last of them ready first.
#ifndef TROUPE_SCHEDULER_PLANNER_SPLIT_BY_SPEED_H_
#define TROUPE_SCHEDULER_PLANNER_SPLIT_BY_SPEED_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// What a schedule takes on a replica: `least` micro-batches and then `each` at
// a time, of which `least` is a multiple.
struct ReplicaBatch {
  int least = 1;
  int each = 1;
};

// Of the schedule; `least` leaves no rank without work on a stage.
// InvalidArgument: it does not exist for the sizes.
absl::StatusOr<ReplicaBatch> ReplicaBatchOf(const ParallelismSpec& parallelism);
// InvalidArgument, beginning with a field's path: the step has too few
// micro-batches for its replicas, or a number that cannot be split.
absl::Status CheckSplit(const JobSpec& resolved, const ReplicaBatch& batch);

// Of each replica, so that the longest time is least: exact, as what is left
// goes where it is done first. `seconds`: of one micro-batch, by replica.
// REQUIRES a total that is at least the least of every replica, and a multiple
// of `each`.
std::vector<int> SplitBySpeed(const std::vector<double>& seconds, int total,
                              const ReplicaBatch& batch = {});

// The job with parallelism.micro_batches, where it says by_speed; with an even
// split where replicas differ by less than measurements of equal machines do
// (kEqualSpeeds) and the batch divides. REQUIRES a resolved job, and a worker
// for each rank. InvalidArgument, beginning with a field's path: the schedule
// has no such split.
absl::StatusOr<JobSpec> WithMicroBatchesBySpeed(
    const JobSpec& resolved, const std::vector<WorkerDescription>& workers);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_SPLIT_BY_SPEED_H_
