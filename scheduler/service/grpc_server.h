// The scheduler on the network: both services, gRPC's health service and
// reflection, on one port. gRPC stays behind this header.
//
//   GrpcServer server(host, compiler, {.flush = ..., .told = ...});
//   sinks.push_back(&server);          // before the first event
//   RETURN_IF_ERROR(server.Start("127.0.0.1:0"));
//   ... server.address() ...
#ifndef TROUPE_SCHEDULER_SERVICE_GRPC_SERVER_H_
#define TROUPE_SCHEDULER_SERVICE_GRPC_SERVER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/trust/peer_trust.h"
#include "scheduler/cluster/host.h"

namespace troupe {

struct GrpcServerOptions {
  using Done = std::function<void(const absl::Status&)>;
  // Calls its argument once all that was handed to the sinks is durable, or
  // with the reason why it is not.
  std::function<void(Done)> flush;
  // Told of each answered RPC; thread-safe.
  std::function<void(absl::string_view rpc, const absl::Status&)> told;
  // How peers know it, and it them.
  PeerTrust trust;
  // For a peer that opens a worker's session to say its name.
  absl::Duration register_max = absl::Seconds(10);
  // Takes workers whose certificates say no worker's name, under any.
  bool unnamed_workers = false;
};

class GrpcServer final : public ActionSink {
 public:
  // Borrows the first two.
  GrpcServer(ClusterHost& host, const JobCompiler& compiler,
             GrpcServerOptions options);
  ~GrpcServer() override;

  // HOST:PORT; port 0 asks the kernel for one. UNAVAILABLE: the port is taken,
  // or the host is not this machine's. Other errors are those of CheckTrust.
  absl::Status Start(const std::string& listen);
  // HOST:PORT, with the port that it has. REQUIRES: started.
  const std::string& address() const;

  // Ends all calls, within a second, and returns when the store has answered
  // all that it was asked. Workers that lose their stream so are no event: what
  // they did is judged at the next start.
  void Stop();

  void Carry(const Actions& actions) override;

  // Of what it sends, and of what comes: less for most (message_limits.h).
  static constexpr int kMessageBytesMax = 256 << 20;
  static constexpr int kReceivedBytesMax = 65 << 20;
  // Calls under way on one connection; more of them wait at the client.
  static constexpr int kStreamsMax = 256;
  // For a peer to prove its identity.
  static constexpr int kHandshakeMsMax = 5'000;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_GRPC_SERVER_H_
