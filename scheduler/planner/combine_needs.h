// What a plan needs of memory with several changes at once, guessed from what
// it needs with each of them by itself: to say which is worth compiling
// (remedies.h).
//
// Changes meet in what they change. Optimizer states of which ZeRO leaves a
// half, and which rest on the host, are half as much there, not less than
// nothing on the device. So each line item is followed by itself: how much
// there is of it is multiplied by what each change leaves of it, and where it
// lies moves as each change moves it. What there is only after a change, such
// as the copies of what is fetched, is added up.
#ifndef TROUPE_SCHEDULER_PLANNER_COMBINE_NEEDS_H_
#define TROUPE_SCHEDULER_PLANNER_COMBINE_NEEDS_H_

#include <array>
#include <map>
#include <string>
#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

inline constexpr Tier kMemoryTiers[] = {DEVICE, HOST, NVME};

using BytesByTier = std::array<double, std::size(kMemoryTiers)>;

// By line item, of each role.
using MemoryNeed = std::vector<std::map<std::string, BytesByTier>>;

MemoryNeed NeedOf(const Plan& plan,
                  const std::vector<WorkerDescription>& workers);

// By role, and within that by tier.
std::vector<double> SumOf(const MemoryNeed& need);

// What there is without any change, and with each of some. REQUIRES the same
// roles in all.
MemoryNeed Combine(const MemoryNeed& without,
                   const std::vector<const MemoryNeed*>& with);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_COMBINE_NEEDS_H_
