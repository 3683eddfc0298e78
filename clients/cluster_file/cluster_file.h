// The cluster file: YAML onto ClusterSpec, for predictions of hardware that one
// does not have. docs/cluster.md explains every field.
#ifndef TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_FILE_H_
#define TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/cluster_spec.pb.h"

namespace troupe {

// What can be wrong with it has been refused; every node has its device in
// place, whether the file names one or describes it there, and what has a
// default has its value.
//
// Errors: NotFound for the file, else InvalidArgument with the place:
// "cluster.yaml:3:30: nodes[0].workers: -8; use 1 to 1024".
absl::StatusOr<ClusterSpec> LoadClusterSpec(const std::string& path);

// The same on a text.
struct ClusterText {
  std::string name;  // for messages, "cluster.yaml"
  std::string text;
};
absl::StatusOr<ClusterSpec> ParseClusterSpec(const ClusterText& cluster);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLUSTER_FILE_CLUSTER_FILE_H_
