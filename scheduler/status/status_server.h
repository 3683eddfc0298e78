// The scheduler over HTTP, for people and scrapers: the status page at /, JSON
// under /api/v1 (api.h), /metrics, /healthz. Read-only, and for those that have
// its token (access.h). On loopback it is HTTP, on other addresses HTTPS, with
// the scheduler's certificate. httplib stays behind this header.
//
// A few threads serve; a connection has one only while its answer is made
// (lobby.h), so that those that are silent or do not read keep nobody out.
#ifndef TROUPE_SCHEDULER_STATUS_STATUS_SERVER_H_
#define TROUPE_SCHEDULER_STATUS_STATUS_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/trust/peer_trust.h"
#include "scheduler/cluster/host.h"
#include "scheduler/service/request_rate.h"
#include "scheduler/status/metrics.h"

namespace troupe {

struct StatusServerOptions {
  // OK, or what is wrong with the scheduler.
  std::function<absl::Status()> health;
  std::string token;               // its holders may read
  std::vector<std::string> names;  // by which this host may be asked
  PeerTrust trust;                 // its certificate, for HTTPS
  // How often a host may ask; beyond it there is 429.
  RequestRateOptions rate = {.wait_max = absl::ZeroDuration()};
};

class StatusServer {
 public:
  // Borrows the host and the metrics.
  StatusServer(const ClusterHost& host, const Metrics& metrics,
               StatusServerOptions options);
  ~StatusServer();

  // HOST:PORT; port 0 asks the kernel for one. INVALID_ARGUMENT: no such
  // address. UNAVAILABLE: the port is taken. On addresses besides loopback, the
  // errors of CheckTrust and TlsServer as well. REQUIRES: SIGPIPE is ignored.
  absl::Status Start(const std::string& listen);
  // "http://HOST:PORT", or "https://...". REQUIRES: started.
  std::string url() const;
  // What a connection from `peer` ("10.0.0.1:77") gets for the head of a
  // request, up to the empty line. REQUIRES: started.
  std::string AnswerTo(const std::string& head, const std::string& peer);
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
