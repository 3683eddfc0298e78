// Which scheduler a command talks to: the address that was given, or the one
// that a running scheduler wrote into its folder (endpoints.json).
#ifndef TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_
#define TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/process_state.h"
#include "proto/trust/peer_trust.h"

namespace troupe {

inline constexpr char kEndpointsFile[] = "endpoints.json";

struct Endpoints {
  std::string grpc;    // HOST:PORT
  std::string http;    // URL of the status page; empty where unknown
  ProcessSpace space;  // that it runs in; empty where unknown
  ProcessId process;   // there; both parts 0 where unknown
  PeerTrust trust;     // how a client and it know each other
};

// DIR/endpoints.json: {"grpc": "127.0.0.1:4321", "http":
// "http://127.0.0.1:4322", "security": "tls", "host": "ada", "boot":
// "1a2b-...", "pids": 4026, "pid": 77, "start_ticks": 123}; an older scheduler
// wrote less. The certificate is DIR/trust/client. NotFound where
// it is not there; FailedPrecondition where the process is gone, or runs
// elsewhere (process_space.h) and listens to that place only; DataLoss where
// the file is no such object.
absl::StatusOr<Endpoints> ReadEndpoints(const std::string& dir);

struct FindSchedulerOptions {
  std::string scheduler;        // HOST:PORT, wins where set
  std::string dir;              // else this; else the environment's
  std::string environment_dir;  // the value of TROUPE_DIR
  // Wins over DIR/trust/client where set.
  std::string certificates;
  int insecure = 0;  // how often it was said
};

// InvalidArgument where nothing says which scheduler, or where HOST:PORT is
// none; else the errors of ReadEndpoints, with the way out.
absl::StatusOr<Endpoints> FindScheduler(const FindSchedulerOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_
