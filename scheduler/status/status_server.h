// The scheduler over HTTP, for people and scrapers: the status page at /, JSON
// under /api/v1 (api.h), /metrics, /healthz. Read-only. httplib stays behind
// this header.
//
// A few threads serve; a connection has one only while its answer is made
// (lobby.h), so that those who are silent or do not read keep nobody out.
#ifndef TROUPE_SCHEDULER_STATUS_STATUS_SERVER_H_
#define TROUPE_SCHEDULER_STATUS_STATUS_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "scheduler/cluster/host.h"
#include "scheduler/status/metrics.h"

namespace troupe {

class StatusServer {
 public:
  // OK, or what is wrong with the scheduler.
  using HealthFunction = std::function<absl::Status()>;

  // Borrows the host and the metrics.
  StatusServer(const ClusterHost& host, const Metrics& metrics,
               HealthFunction health);
  ~StatusServer();

  // HOST:PORT; port 0 asks the kernel for one. INVALID_ARGUMENT: no such
  // address. UNAVAILABLE: the port is taken.
  absl::Status Start(const std::string& listen);
  // "http://HOST:PORT". REQUIRES: started.
  std::string url() const;
  // Closes all connections, when the answers under way have been made.
  void Stop();

  // Beyond it, those that have been there the longest make room.
  static constexpr int kConnectionsMax = 512;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_STATUS_SERVER_H_
