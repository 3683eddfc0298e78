#include "scheduler/simulate/links.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr double kNetworkLatencyUs = 30;
constexpr double kNetworkBytesPerSecond = 1.1e9;

}  // namespace

LinkRate Times(LinkRate link, double bandwidth) {
  link.set_bytes_per_second(link.bytes_per_second() * bandwidth);
  return link;
}

bool KnowsNetwork(const WorkerDescription& worker) {
  return worker.network().rate().bytes_per_second() > 0;
}

LinkRate NetworkOf(const WorkerDescription& worker) {
  if (KnowsNetwork(worker)) return worker.network().rate();
  LinkRate network;
  for (const Nic& nic : worker.nics()) {
    const LinkRate& rate = nic.link().rate();
    network.set_latency_us(std::max(network.latency_us(), rate.latency_us()));
    network.set_bytes_per_second(network.bytes_per_second() +
                                 rate.bytes_per_second());
  }
  if (worker.nics_size() > 0) return network;
  network.set_latency_us(kNetworkLatencyUs);
  network.set_bytes_per_second(kNetworkBytesPerSecond);
  return network;
}

}  // namespace troupe
