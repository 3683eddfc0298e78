// What workers measured between hosts, for `troupe doctor --network`: a matrix
// of few hosts, the slowest pairs of many, and which pairs are slow.
#ifndef TROUPE_CLIENTS_CLI_VIEW_NETWORK_VIEW_H_
#define TROUPE_CLIENTS_CLI_VIEW_NETWORK_VIEW_H_

#include <string>

#include "proto/cluster.pb.h"

namespace troupe {

// A pair is slow that reaches less than half of the bandwidth of the median
// pair, or takes more than three times its latency.
std::string NetworkView(const Topology& topology);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_VIEW_NETWORK_VIEW_H_
