// For how long the machine at the other end of a connection has not answered,
// as the kernel knows it: data was sent, and no segment has come back since.
// A process that is paused (SIGSTOP) has a kernel that goes on acknowledging
// what it is sent; a machine that lost its power or its network acknowledges
// nothing, and says nothing either. gRPC's own pings are answered by the other
// process, and cannot tell the two apart.
//
//   PeerSilence silence(context.peer());
//   ... every few seconds, while something is sent ...
//   if (silence.Look(clock.MonotonicNanos()) > limit) ...
#ifndef TROUPE_WORKER_SERVICE_PEER_SILENCE_H_
#define TROUPE_WORKER_SERVICE_PEER_SILENCE_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace troupe {

class PeerSilence {
 public:
  // All connections of this process to that address count, as gRPC writes it:
  // "ipv4:10.0.0.1:5000", "ipv6:%5B::1%5D:5000".
  explicit PeerSilence(std::string peer);

  // `now_ns` is of a monotonic clock. Zero where the peer has answered since
  // the look before, where nothing waits for its answer, and where there is no
  // connection to it.
  absl::Duration Look(int64_t now_ns);

 private:
  const std::string peer_;
  uint64_t segments_ = 0;  // received from it, at the last look
  absl::optional<int64_t> silent_since_ns_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_PEER_SILENCE_H_
