// The memory that a worker lends to its jobs: one arena for each tier, with the
// budget that the worker registered. The arenas live as long as the worker; a
// job takes its slots from them when it starts and gives them back when it
// ends.
#ifndef TROUPE_WORKER_RANK_TIER_ARENAS_H_
#define TROUPE_WORKER_RANK_TIER_ARENAS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "storage/tier/allocator.h"
#include "storage/tier/arena.h"

namespace troupe {

// "device", "host", "nvme".
std::string TierName(Tier tier);

// Thread-safe after construction.
class TierArenas {
 public:
  // Memory of every tier comes from `allocator`, which must outlive this.
  TierArenas(const std::vector<TierBudget>& budgets, TierAllocator& allocator);
  // From allocators of their own: those of device and host memory.
  struct Allocators {
    TierAllocator& device;
    TierAllocator& host;  // of all tiers but DEVICE
  };
  TierArenas(const std::vector<TierBudget>& budgets,
             const Allocators& allocators);

  // FailedPrecondition where the worker has no such tier.
  absl::StatusOr<Arena*> Find(Tier tier) const;

  // Bytes in use, over all tiers.
  size_t used() const;

 private:
  std::map<Tier, std::unique_ptr<Arena>> arenas_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TIER_ARENAS_H_
