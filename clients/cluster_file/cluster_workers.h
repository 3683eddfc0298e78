// The workers of a cluster file, described as workers describe themselves, so
// that the planner sees no difference.
#ifndef TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_WORKERS_H_
#define TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_WORKERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "proto/cluster_spec.pb.h"

namespace troupe {

// How many workers the file describes.
int CountWorkers(const ClusterSpec& cluster);

struct WorkersWanted {
  int count = 1;
  std::string precision = "f32";  // in which the job computes
};

// The first of them: worker i is the i-th place of the nodes in their order,
// named "node-<n>/<place>". REQUIRES a cluster that LoadClusterSpec returned.
//
// FailedPrecondition where there are fewer, InvalidArgument where a device that
// is wanted has no product in the job's precision, nor in one of equal rate:
// GPUs multiply bf16 and fp16 at one rate, processors multiply fp16 in f32. A
// precision that does not exist is the planner's to refuse.
absl::StatusOr<std::vector<WorkerDescription>> ClusterWorkers(
    const ClusterSpec& cluster, const WorkersWanted& wanted);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_WORKERS_H_
