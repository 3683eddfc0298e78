#include "scheduler/simulate/effort.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace troupe {
namespace {

int64_t Nanoseconds(double seconds) {
  return static_cast<int64_t>(std::llround(seconds * 1e9));
}

}  // namespace

Effort EffortOf(const Cost& cost, bool computes) {
  const double latency = std::max(0.0, cost.communication - cost.on_wire);
  const double work =
      std::max(0.0, cost.total() - cost.waiting - cost.communication);
  Effort effort = {
      .compute_ns = computes ? Nanoseconds(work) : 0,
      .other_ns = Nanoseconds(cost.waiting + latency + (computes ? 0 : work)),
      .wire_ns = Nanoseconds(cost.on_wire)};
  if (effort.wire_ns == 0) return effort;
  for (int link = 0; link < kLinks; ++link) {
    effort.links_ns[link] = cost.on_links[link] * 1e9;
  }
  effort.out_bytes = cost.bytes[NETWORK_OUT];
  effort.in_bytes = cost.bytes[NETWORK_IN];
  return effort;
}

}  // namespace troupe
