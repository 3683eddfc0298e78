// How the micro-batches of a step lie on data-parallel replicas: as many on
// each, or unlike numbers, so that fast replicas do more. Samples go to
// replicas in their order, so which of them a step trains on, and how each is
// seen (its dropout masks, its weight in the mean), does not depend on it.
#ifndef TROUPE_PROTO_PLAN_REPLICA_SHARE_H_
#define TROUPE_PROTO_PLAN_REPLICA_SHARE_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"
#include "proto/program.pb.h"

namespace troupe {

// Sequences of a micro-batch that goes through a replica's units: its ranks
// along axes of fields of data have training.micro_batch_size each.
int64_t MicroBatchSequences(const Plan& plan);

// Which replica a rank is of: its place on the axis "data", counted on over the
// islands (islands.h); and how many there are.
int ReplicaOf(const Mesh& mesh, int rank);
int ReplicaCount(const Mesh& mesh);

// Of all micro-batches of a step, or of a validation, those of one replica.
struct ReplicaShare {
  int64_t first = 0;
  int count = 0;
};
// `replica`: as ReplicaOf says. VALIDATE, or any other program, which are of
// training.
ReplicaShare ShareOf(const Derived& derived, Program::Kind program,
                     int replica);

// Replicas that run equally many micro-batches, and store slices of one size
// (parallelism.zero_weights), by their places on "data", ascending; those that
// run most come first, of these the ones that store most. Servers run none.
// They do the same, in the roles of each place of the pipeline. One kind
// without places where all are alike. REQUIRES the plan's job and what is
// derived of it.
std::vector<std::vector<int>> ReplicaKinds(const Plan& plan);

// FailedPrecondition: the plan's numbers are not of its replicas, or do not add
// up to the global batch.
absl::Status CheckReplicaShares(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_REPLICA_SHARE_H_
