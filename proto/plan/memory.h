// Memory that a plan needs, by line item, and how bytes are written for people.
#ifndef TROUPE_PROTO_PLAN_MEMORY_H_
#define TROUPE_PROTO_PLAN_MEMORY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// The role's slots summed by tier and line item, in order of appearance:
// parameters, gradients, optimizer_moments, ...; and of what is on a disk the
// checksums, in the host tier.
std::vector<MemoryItem> MemoryItems(const Role& role);

// The sum of those.
int64_t BytesIn(const Role& role, Tier tier);

// Bytes of a line item that the plan's prediction has for a rank, among them
// what is in no slot; 0: none.
int64_t PredictedBytes(const Plan& plan, int rank, absl::string_view item);
// What kernels of GPUs need while they run.
inline constexpr char kKernelScratchItem[] = "kernel_scratch";

// Of nvme_bytes of the nvme tier, what their checksums take of the host's:
// four bytes for each block (storage/spill/spill_file.h), in whole blocks.
int64_t ChecksumBytes(int64_t nvme_bytes);
inline constexpr char kChecksumsItem[] = "checksums";

// "512 B", "1.5 KiB", "42.3 MiB", "7.00 GiB": three digits.
std::string ReadableBytes(int64_t bytes);

// "device", "host", "nvme".
std::string TierText(Tier tier);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MEMORY_H_
