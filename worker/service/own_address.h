// Whether peers may be told to reach a worker at an address: only where the
// worker can listen there. One that cannot joins the cluster, is idle, and ends
// every job that it gets a rank of.
#ifndef TROUPE_WORKER_SERVICE_OWN_ADDRESS_H_
#define TROUPE_WORKER_SERVICE_OWN_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace troupe {

// `address`: of IPv4 or IPv6, or a name, of whose addresses one that this host
// has will do, as for a listener there (collective/gloo). InvalidArgument
// begins with "--address: " and says what the name is and which addresses this
// host has; Unavailable: the name could not be looked up now.
absl::Status CheckOwnAddress(const std::string& address);

// Whether workers of other hosts can reach one at `address`, where its cluster
// may have such: where the scheduler, HOST:PORT, is not on this host. Ok, too,
// where either name could not be looked up. InvalidArgument: the address is one
// of loopback; it says which others this host has. REQUIRES: CheckOwnAddress.
absl::Status CheckReachableFromOtherHosts(const std::string& address,
                                          const std::string& scheduler);

// "127.0.0.1 (lo)", "10.0.0.7 (eth0)", in the order of the interfaces, those of
// one link (fe80::) left out.
std::vector<std::string> OwnAddresses();

}  // namespace troupe

#endif  // TROUPE_WORKER_SERVICE_OWN_ADDRESS_H_
