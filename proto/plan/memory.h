// Memory that a plan needs, by line item, and how bytes are written for people.
#ifndef TROUPE_PROTO_PLAN_MEMORY_H_
#define TROUPE_PROTO_PLAN_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// The role's slots summed by tier and line item, in order of appearance:
// parameters, gradients, optimizer_moments, ...
std::vector<MemoryItem> MemoryItems(const Role& role);

int64_t BytesIn(const Role& role, Tier tier);

// "512 B", "1.5 KiB", "42.3 MiB", "7.00 GiB": three digits.
std::string ReadableBytes(int64_t bytes);

// "device", "host", "nvme".
std::string TierText(Tier tier);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MEMORY_H_
