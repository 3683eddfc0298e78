// Which scheduler a command talks to: the address that was given, or the one
// that a running scheduler wrote into its folder (endpoints.json).
#ifndef TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_
#define TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/base/process_state.h"

namespace troupe {

inline constexpr char kEndpointsFile[] = "endpoints.json";

struct Endpoints {
  std::string grpc;   // HOST:PORT
  std::string http;   // URL of the status page; empty where unknown
  std::string host;   // that it runs on; empty where unknown
  ProcessId process;  // on that host; both parts 0 where unknown

  // Whether it runs on another machine than this one.
  bool is_elsewhere() const { return !host.empty() && host != HostName(); }
};

// DIR/endpoints.json: {"grpc": "127.0.0.1:4321", "http":
// "http://127.0.0.1:4322", "host": "ada", "pid": 77, "start_ticks": 123}; an
// older scheduler wrote no host and no start. NotFound where it is not there;
// FailedPrecondition where the process is gone, or runs on another host and
// listens to that host only; DataLoss where the file is no such object.
absl::StatusOr<Endpoints> ReadEndpoints(const std::string& dir);

struct FindSchedulerOptions {
  std::string scheduler;        // HOST:PORT, wins where set
  std::string dir;              // else this; else the environment's
  std::string environment_dir;  // the value of TROUPE_DIR
};

// InvalidArgument where nothing says which scheduler, or where HOST:PORT is
// none; else the errors of ReadEndpoints, with the way out.
absl::StatusOr<Endpoints> FindScheduler(const FindSchedulerOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CPP_FIND_SCHEDULER_H_
