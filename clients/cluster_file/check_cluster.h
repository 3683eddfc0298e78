// What a cluster file may say: refuses what is missing, not positive or absurd,
// with the place, and fills in defaults.
#ifndef TROUPE_CLIENTS_CLUSTER_FILE_CHECK_CLUSTER_H_
#define TROUPE_CLIENTS_CLUSTER_FILE_CHECK_CLUSTER_H_

#include "absl/status/status.h"
#include "clients/job_file/fill_message.h"
#include "proto/cluster_spec.pb.h"

namespace troupe {

// `positions` are those of the fields that were written. A node without a
// device has named one: that is somebody else's to check.
absl::Status CheckCluster(const PositionMap& positions, ClusterSpec& cluster);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLUSTER_FILE_CHECK_CLUSTER_H_
