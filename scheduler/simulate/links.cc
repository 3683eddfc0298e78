#include "scheduler/simulate/links.h"

namespace troupe {
namespace {

constexpr double kNetworkLatencyUs = 30;
constexpr double kNetworkBytesPerSecond = 1.1e9;

}  // namespace

LinkRate Times(LinkRate link, double bandwidth) {
  link.set_bytes_per_second(link.bytes_per_second() * bandwidth);
  return link;
}

LinkRate NetworkOf(const WorkerDescription& worker) {
  if (worker.network().bytes_per_second() > 0) return worker.network();
  LinkRate network;
  network.set_latency_us(kNetworkLatencyUs);
  network.set_bytes_per_second(kNetworkBytesPerSecond);
  return network;
}

}  // namespace troupe
