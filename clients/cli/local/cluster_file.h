// DIR/pids.json: which processes of which host a local cluster consists of, so
// that `down` ends those and no others. It names each from its start until it
// has ended, whatever starts and ends others of them at the same time:
//
//   {"host": "ada", "boot": "1a2b-...", "pids": 4026531836, "members": [
//     {"name": "scheduler", "pid": 7, "start_ticks": 123},
//     {"name": "worker-0", "pid": 8, "start_ticks": 124, "threads": 4,
//      "device_memory": "1GiB", "host_memory": "1GiB", "nvme": "/nvme",
//      "nvme_size": "9GiB", "gpu": false, "scheduler": "127.0.0.1:4321",
//      "insecure": false}, ...]}
//
// A worker that is gone stays in it while others live: one that takes its place
// is started as it was. So does the scheduler, at the address at which they
// look for it.
#ifndef TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_
#define TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "clients/cli/local/machine_share.h"
#include "proto/base/process_state.h"

namespace troupe {

inline constexpr char kClusterFile[] = "pids.json";
inline constexpr char kSchedulerName[] = "scheduler";

struct ClusterMember {
  std::string name;  // "scheduler", "worker-0"
  ProcessId process;
  WorkerShare share;  // what a worker was started with; older builds said none
  // Of a worker: where it looks for its scheduler; empty: an older build's.
  std::string scheduler = "";
  bool insecure = false;  // without certificates
  bool operator==(const ClusterMember&) const = default;
};

inline bool IsWorker(const ClusterMember& member) {
  return member.name != kSchedulerName;
}

inline int CountWorkers(const std::vector<ClusterMember>& members) {
  return static_cast<int>(
      std::count_if(members.begin(), members.end(), IsWorker));
}

template <typename Predicate>
void EraseIf(std::vector<ClusterMember>& members, const Predicate& predicate) {
  members.erase(std::remove_if(members.begin(), members.end(), predicate),
                members.end());
}

// The scheduler first. Empty where there is no file; FailedPrecondition where
// they live elsewhere (clients/cpp/process_space.h); DataLoss where the file is
// not ours.
absl::StatusOr<std::vector<ClusterMember>> ReadClusterFile(
    const std::string& dir);
// Replaces the file by one of the members as `change` leaves them, or removes
// it where it leaves none. No other process changes it meanwhile: they take
// turns with a lock, DIR/pids.lock. The errors of reading it, or those of the
// disk, with the errno.
absl::Status ChangeClusterFile(
    const std::string& dir,
    absl::FunctionRef<void(std::vector<ClusterMember>& members)> change);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_CLUSTER_FILE_H_
