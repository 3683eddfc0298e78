// A scheduler, put together: lock, store, cluster, gRPC, HTTP, time. main.cc
// parses its options; a test starts one inside itself.
//
//   ASSIGN_OR_RETURN(auto daemon,
//                    SchedulerDaemon::Start({.state = "/var/lib/troupe"}));
//   ... daemon->grpc_address(), daemon->http_url() ...
//   daemon.reset();   // graceful: sessions end, what is queued is written
#ifndef TROUPE_SCHEDULER_DAEMON_H_
#define TROUPE_SCHEDULER_DAEMON_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "proto/trust/peer_trust.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

struct SchedulerDaemonOptions {
  std::string state;                   // directory, made where missing
  std::string listen = "127.0.0.1:0";  // gRPC; port 0: the kernel chooses
  std::string http = "127.0.0.1:0";
  // By which this host may be asked over HTTP, besides its own and addresses.
  std::vector<std::string> http_names;
  // How workers and clients know it, and it them. Where nothing is said, by the
  // certificate that `troupe up` keeps in the state directory.
  PeerTrust trust;
  // Takes workers whose certificates say no worker's name, under any.
  bool unnamed_workers = false;
  Limits limits;
};

class SchedulerDaemon {
 public:
  // Returns when it serves. Then STATE/endpoints.json says where:
  //   {"grpc": "127.0.0.1:PORT", "http": "http://127.0.0.1:PORT",
  //    "security": "tls", "host": "ada", "boot": "1a2b-...",
  //    "pids": 4026531836, "pid": N, "start_ticks": T}
  // "security" is "none" of one that is insecure.
  // FAILED_PRECONDITION: another scheduler has the state directory; other
  // errors as StateLock, Store, GrpcServer and StatusServer say.
  static absl::StatusOr<std::unique_ptr<SchedulerDaemon>> Start(
      const SchedulerDaemonOptions& options);

  // Stops within two seconds; takes endpoints.json away.
  ~SchedulerDaemon();

  // Has jobs that run saved and ended, since `signal` ("TERM") came, and starts
  // no other. Returns when they have ended, which takes as long as Limits allow
  // any end of a job, or when `hurried`, which may wait a little, says true.
  void EndJobs(const std::string& signal, absl::FunctionRef<bool()> hurried);

  // Where others reach it (published_address.h).
  std::string grpc_address() const;
  std::string http_url() const;

 private:
  struct Parts;
  explicit SchedulerDaemon(std::unique_ptr<Parts> parts);
  const std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_DAEMON_H_
