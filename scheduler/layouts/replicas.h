// How many ranks compute a micro-batch together. Of parallelism.data, ranks
// that share something by a field of data (proto/plan/sharing.h) are one
// replica: the rows of these fields say how many ranks they take.
#ifndef TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_
#define TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_

#include <cstdint>

#include "proto/job.pb.h"
#include "proto/plan/sharing.h"

namespace troupe {

// Values of servers.mode.
inline constexpr char kServersSync[] = "sync";
inline constexpr char kServersAsync[] = "async";
inline constexpr char kServersBounded[] = "bounded";

// Ranks of parallelism.data that compute a micro-batch together.
int RanksOfReplica(const ParallelismSpec& parallelism);

// The field of data by which these share something; nullptr: each rank of
// parallelism.data is a replica.
const RankField* FieldOfReplica(const ParallelismSpec& parallelism);

// Replicas that have micro-batches of their own.
int ReplicasOf(const ParallelismSpec& parallelism);

// Whether each step is one replica's (servers.mode: async, bounded); how many
// replicas compute one together; and over how many ranks of parallelism.data
// its batch is divided, or an island's part of it.
bool TakesTurns(const JobSpec& job);
int ReplicasOfStep(const JobSpec& job);
int DataOfStep(const JobSpec& job);

// Sequences of a micro-batch that goes through a replica's units, of a job that
// has no plan yet. Of a plan: proto/plan/replica_share.h.
int64_t MicroBatchSequences(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_REPLICAS_H_
