// Whether what ranks on several hosts send each other can be kept from others.
// Troupe proves a rank's identity and encrypts nothing of its tensors
// (docs/security.md); a tunnel between the hosts does.
#ifndef TROUPE_WORKER_DOCTOR_TUNNELS_H_
#define TROUPE_WORKER_DOCTOR_TUNNELS_H_

#include <string>
#include <vector>

#include "worker/doctor/finding.h"

namespace troupe {

struct Tunnel {
  std::string interface;  // "wg0"
  std::string address;    // "10.9.0.1"; empty: it has none
};

// The WireGuard interfaces that `folder` lists (/sys/class/net).
std::vector<Tunnel> FindTunnels(const std::string& folder);

Finding JudgeTunnels(const std::vector<Tunnel>& tunnels);
Finding CheckTunnels();

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_TUNNELS_H_
