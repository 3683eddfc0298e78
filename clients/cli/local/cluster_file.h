// DIR/pids.json: which processes of which host a local cluster consists of, so
// that `down` ends those and no others:
//
//   {"host": "ada", "members": [{"name": "scheduler", "pid": 7,
//                                "start_ticks": 123}, ...]}
#ifndef TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_
#define TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/base/process_state.h"

namespace troupe {

inline constexpr char kClusterFile[] = "pids.json";

struct ClusterMember {
  std::string name;  // "scheduler", "worker-0"
  ProcessId process;
  bool operator==(const ClusterMember&) const = default;
};

// The scheduler first. Empty where there is no file; FailedPrecondition where
// they are another host's; DataLoss where the file is not ours.
absl::StatusOr<std::vector<ClusterMember>> ReadClusterFile(
    const std::string& dir);
// Replaces the file in one step.
absl::Status WriteClusterFile(const std::string& dir,
                              const std::vector<ClusterMember>& members);
void RemoveClusterFile(const std::string& dir);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_
