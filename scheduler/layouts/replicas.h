// How many ranks compute a micro-batch together. Of parallelism.data, ranks
// that share something by a field of data (proto/plan/sharing.h) are one
// replica: the rows of these fields say how many ranks they take.
#ifndef TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_
#define TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/plan/sharing.h"

namespace troupe {

// Ranks of parallelism.data that compute a micro-batch together.
int RanksOfReplica(const ParallelismSpec& parallelism);

// The field of data by which these share something; nullptr: each rank of
// parallelism.data is a replica.
const RankField* FieldOfReplica(const ParallelismSpec& parallelism);

// Replicas that have micro-batches of their own.
int ReplicasOf(const ParallelismSpec& parallelism);

// Sequences of a micro-batch that goes through a replica's units, of a job that
// has no plan yet. Of a plan: proto/plan/replica_share.h.
int64_t MicroBatchSequences(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_
