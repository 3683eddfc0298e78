// A cluster on this machine: one scheduler and N workers as daemons, all that
// they write in one folder:
//
//   DIR/endpoints.json   where the scheduler listens (it writes this itself)
//   DIR/pids.json        which processes belong to the cluster
//   DIR/up.lock          held while one is started, by its process
//   DIR/logs/*.log       what they say
//   DIR/trust/           how they know each other (trust/cluster_trust.h)
//   DIR/...              the scheduler's state
#ifndef TROUPE_CLIENTS_CLI_LOCAL_LOCAL_CLUSTER_H_
#define TROUPE_CLIENTS_CLI_LOCAL_LOCAL_CLUSTER_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cli/local/cluster_file.h"
#include "clients/cli/local/end_members.h"
#include "clients/cli/local/machine_share.h"
#include "clients/cli/local/programs.h"
#include "clients/cpp/find_scheduler.h"

namespace troupe {

struct LocalClusterOptions {
  std::string dir;
  int workers = 1;
  WorkerShare share;         // of each worker; what is not said is an even one
  bool end_with_us = false;  // all end when this process does
  bool insecure = false;     // without certificates
  absl::Duration start = absl::Seconds(120);  // calibration included
  ProgramSearch search;
};

struct LocalCluster {
  Endpoints endpoints;
  std::vector<ClusterMember> members;  // the scheduler first
  std::vector<std::string> started;    // names of those that did not run before
};

// Returns once every worker is registered. Where a cluster lives in DIR that
// has lost its scheduler, or has fewer workers, since some are gone or more are
// wanted, those are started and the others left alone; a worker that was gone
// is started as it was, and others on GPUs where that one is; a scheduler
// listens where the workers look for it, and takes back what they run.
// AlreadyExists where nothing is missing, or has to end with us;
// FailedPrecondition where `share` says another thing than a worker had or
// `insecure` another than the cluster is, or where workers of an older build
// live without their scheduler; Cancelled once
// `keep_going` says no; else what failed, with the end of the log of the one
// that failed. After an error nothing that was started is left running. Of two
// calls for one DIR at a time, in whichever processes, the second waits.
absl::StatusOr<LocalCluster> StartLocalCluster(
    const LocalClusterOptions& options,
    const std::function<bool()>& keep_going);

struct StoppedCluster {
  int stopped = 0;                  // members that were running
  std::vector<std::string> killed;  // names of those that had to be
};
// Ends the cluster of `options.dir`: the workers, when their jobs are saved,
// then the scheduler, each with a grace before it is killed. Only processes
// that StartLocalCluster started: an id that the kernel has given to another
// process since is left alone. NotFound where there is no cluster; else
// EndedMembers::complaint, and DIR/pids.json names those that are left still.
absl::StatusOr<StoppedCluster> StopLocalCluster(
    const EndMembersOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_LOCAL_LOCAL_CLUSTER_H_
