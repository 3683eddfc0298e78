// Checks of what daemons and ranks need of the network.
#ifndef TROUPE_WORKER_DOCTOR_NETWORK_H_
#define TROUPE_WORKER_DOCTOR_NETWORK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/doctor/finding.h"

namespace troupe {

// Listens on loopback, then on any address, and stops again. Port 0: the kernel
// chooses.
Finding CheckPorts(int port);
// Whether others can find this machine by its own name.
Finding CheckHostName();
// A connection to ourselves and a byte there and back.
Finding CheckLoopback();

struct HostAddresses {
  std::string name;
  std::vector<std::string> addresses;  // what the name resolves to
};
Finding JudgeHostName(const HostAddresses& host);

// The shortest of some trips of one byte there and back over TCP.
absl::StatusOr<absl::Duration> LoopbackRoundTrip();

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_NETWORK_H_
