#include "scheduler/simulate/traffic.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/plan/direct_collectives.h"

namespace troupe {
namespace {

// Of `hops` hops, one after the other, as many as can be between hosts.
double HopSeconds(const GroupLinks& group, int hops, int crossings) {
  const int far = std::min(hops, crossings);
  return (far * group.network.latency_us() +
          (hops - far) * group.local.latency_us()) *
         1e-6;
}

double Longest(const GroupLinks& group, double far_bytes, double near_bytes) {
  double seconds = 0;
  if (far_bytes > 0) seconds = far_bytes / group.network.bytes_per_second();
  if (near_bytes > 0) {
    seconds = std::max(seconds, near_bytes / group.local.bytes_per_second());
  }
  return seconds;
}

OnLinks Evenly(double far_bytes, double near_bytes) {
  return {far_bytes, far_bytes, near_bytes, near_bytes};
}

// What the busiest rank sends, where they do not all send as much.
double MostBytesSent(const CollectiveSize& size) {
  const auto bytes = static_cast<double>(size.bytes);
  if (size.collective == BROADCAST) return bytes;
  // The root receives pieces of the sum as in an all-reduce.
  if (size.collective == REDUCE)
    return 2 * bytes * (size.ranks - 1) / size.ranks;
  return static_cast<double>(CollectiveBytesSent(size));
}

Traffic AllToAll(const GroupLinks& group, const GroupPlace& place,
                 const CollectiveSize& size) {
  const double block = static_cast<double>(size.bytes) / size.ranks;
  const int far = group.ranks - place.on_host;
  Traffic traffic;
  traffic.latency = HopSeconds(group, group.ranks - 1, far);
  traffic.moving = Longest(group, (group.ranks - group.fewest) * block,
                           (group.most - 1) * block);
  traffic.bytes = Evenly(far * block, (place.on_host - 1) * block);
  return traffic;
}

// Each rank sends to the next, all of them at once.
Traffic OneRing(const GroupLinks& group, const GroupPlace& place,
                const Operation& operation) {
  const auto sent = static_cast<double>(CollectiveBytesSent(operation.size));
  const double most = MostBytesSent(operation.size);
  Traffic traffic;
  traffic.moving = Longest(group, group.crossings > 0 ? most : 0,
                           group.crossings < group.ranks ? most : 0);
  const bool out_far = operation.backward ? place.previous_far : place.next_far;
  const bool in_far = operation.backward ? place.next_far : place.previous_far;
  traffic.bytes[out_far ? NETWORK_OUT : LOCAL_OUT] = sent;
  traffic.bytes[in_far ? NETWORK_IN : LOCAL_IN] = sent;
  return traffic;
}

// A ring through each rank of the host that has fewest; what a host has more of
// shares in them.
Traffic Rails(const GroupLinks& group, const GroupPlace& place,
              const CollectiveSize& size) {
  const auto near_part = [](int on_host) {
    return static_cast<double>(on_host - 1) / on_host;
  };
  const auto sent = static_cast<double>(CollectiveBytesSent(size));
  const double most = MostBytesSent(size);
  Traffic traffic;
  traffic.moving =
      Longest(group, most / group.fewest, most * near_part(group.most));
  traffic.bytes = Evenly(sent / place.on_host, sent * near_part(place.on_host));
  return traffic;
}

// Rounded up.
int Log2(int number) {
  int log = 0;
  while ((int64_t{1} << log) < number) ++log;
  return log;
}

Traffic Tree(const GroupLinks& group, const GroupPlace& place,
             const CollectiveSize& size) {
  const double both_ways = 2.0 * static_cast<double>(size.bytes);
  Traffic traffic;
  traffic.latency = 2 *
                    (Log2(group.hosts) * group.network.latency_us() +
                     (group.most - 1) * group.local.latency_us()) *
                    1e-6;
  traffic.moving =
      Longest(group, both_ways / group.fewest, group.most > 1 ? both_ways : 0);
  traffic.bytes =
      Evenly(both_ways / place.on_host, place.on_host > 1 ? both_ways : 0);
  return traffic;
}

Traffic Plus(Traffic first, const Traffic& then) {
  first.latency += then.latency;
  first.moving += then.moving;
  for (int link = 0; link < kLinks; ++link) {
    first.bytes[link] += then.bytes[link];
  }
  return first;
}

double FarthestSeconds(const GroupLinks& group) {
  const LinkRate& link = group.hosts > 1 ? group.network : group.local;
  return link.latency_us() * 1e-6;
}

// One step, in which each rank sends `bytes` to each other: twice the latency
// of a link, whose measure is half of such a step between two ranks.
Traffic Direct(const GroupLinks& group, const GroupPlace& place, double bytes) {
  Traffic traffic;
  traffic.latency = 2 * FarthestSeconds(group);
  traffic.moving = Longest(group, (group.ranks - group.fewest) * bytes,
                           (group.most - 1) * bytes);
  traffic.bytes = Evenly((group.ranks - place.on_host) * bytes,
                         (place.on_host - 1) * bytes);
  return traffic;
}

// From or to a root, which all others are as often.
Traffic WithRoot(const GroupLinks& group, const GroupPlace& place,
                 double bytes) {
  Traffic traffic = Direct(group, place, bytes);
  traffic.latency = FarthestSeconds(group);
  for (double& of_link : traffic.bytes) of_link /= group.ranks;
  return traffic;
}

// Through all ranks, and back where all are to have a sum.
Traffic Ring(const GroupLinks& group, const GroupPlace& place,
             const CollectiveSize& size) {
  Traffic ring = OneRing(group, place, {.size = size});
  const bool twice = size.collective == ALL_REDUCE || size.collective == REDUCE;
  ring.latency =
      (twice ? 2 : 1) * HopSeconds(group, size.ranks - 1, group.crossings);
  return ring;
}

Traffic Nccl(const GroupLinks& group, const GroupPlace& place,
             const CollectiveSize& size) {
  Traffic rails = Rails(group, place, size);
  const bool twice = size.collective == ALL_REDUCE || size.collective == REDUCE;
  rails.latency =
      (twice ? 2 : 1) * HopSeconds(group, size.ranks - 1, group.hosts);
  if (size.collective != ALL_REDUCE) return rails;
  const Traffic tree = Tree(group, place, size);
  return tree.latency + tree.moving < rails.latency + rails.moving ? tree
                                                                   : rails;
}

// As worker/collective/gloo chooses.
Traffic Gloo(const GroupLinks& group, const GroupPlace& place,
             const Operation& operation) {
  const CollectiveSize& size = operation.size;
  const auto whole = static_cast<double>(size.bytes);
  const double block = whole / size.ranks;
  const auto ring = [&](Collective collective) {
    return Ring(
        group, place,
        {.bytes = size.bytes, .ranks = size.ranks, .collective = collective});
  };
  const auto scattered = [&] {
    return operation.narrow || group.in_order ? Direct(group, place, block)
                                              : ring(REDUCE_SCATTER);
  };
  switch (size.collective) {
    case ALL_REDUCE:
      if (SendsWholeDirectly(size.bytes, size.ranks)) {
        return Direct(group, place, whole);
      }
      return Plus(scattered(), ring(ALL_GATHER));
    case REDUCE:
      if (SendsWholeDirectly(size.bytes, size.ranks)) {
        return WithRoot(group, place, whole);
      }
      return Plus(scattered(), WithRoot(group, place, block));
    case REDUCE_SCATTER:
      return SendsBlocksDirectly(size.bytes, size.ranks)
                 ? Direct(group, place, block)
                 : scattered();
    case ALL_GATHER:
      return SendsBlocksDirectly(size.bytes, size.ranks)
                 ? Direct(group, place, block)
                 : ring(ALL_GATHER);
    case BROADCAST:
      return BroadcastsDirectly(size.bytes, size.ranks)
                 ? WithRoot(group, place, whole)
                 : ring(BROADCAST);
    default:
      return ring(size.collective);
  }
}

}  // namespace

Algorithms AlgorithmsOf(const std::string& backend) {
  if (backend == "nccl") return Algorithms::kNccl;
  return backend == "gloo" ? Algorithms::kGloo : Algorithms::kSharedMemory;
}

std::string LookOf(const GroupLinks& links) {
  return absl::StrCat(links.local.SerializeAsString(), "/",
                      links.network.SerializeAsString(), "/", links.hosts, "/",
                      links.fewest, "/", links.most, "/", links.crossings, "/",
                      static_cast<int>(links.algorithms), "/", links.in_order);
}

Traffic CollectiveTraffic(const GroupLinks& group, const GroupPlace& place,
                          const Operation& operation) {
  const CollectiveSize& size = operation.size;
  if (size.ranks <= 1 || size.collective == SLICE) return {};
  if (size.collective == ALL_TO_ALL) return AllToAll(group, place, size);
  if (size.collective == SHIFT) {
    Traffic shift = OneRing(group, place, operation);
    shift.latency = HopSeconds(group, 1, group.crossings);
    return shift;
  }
  if (group.algorithms == Algorithms::kGloo) {
    return Gloo(group, place, operation);
  }
  return group.algorithms == Algorithms::kNccl && group.hosts > 1
             ? Nccl(group, place, size)
             : Ring(group, place, size);
}

}  // namespace troupe
