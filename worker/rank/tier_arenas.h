// The memory that a worker lends to its jobs, and the room on its disk: one
// arena for each tier, with the budget that the worker registered. The arenas
// live as long as the worker; a job takes its slots from them when it starts
// and gives them back when it ends.
#ifndef TROUPE_WORKER_RANK_TIER_ARENAS_H_
#define TROUPE_WORKER_RANK_TIER_ARENAS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"
#include "storage/engine/engine.h"
#include "storage/engine/make_engine.h"
#include "storage/tier/allocator.h"
#include "storage/tier/arena.h"

namespace troupe {

// "device", "host", "nvme".
std::string TierName(Tier tier);

// What a rank makes its part of the nvme tier of.
struct NvmeTier {
  std::string directory;
  std::string cluster;  // as spill files say (SpillOwner)
  // For each thread that moves.
  std::function<absl::StatusOr<std::unique_ptr<IoEngine>>()> new_engine = [] {
    return MakeIoEngine({.log = false});
  };
};

// Thread-safe after construction.
class TierArenas {
 public:
  // Memory of both tiers that are such comes from `allocator`, which must
  // outlive this.
  TierArenas(const std::vector<TierBudget>& budgets, TierAllocator& allocator);
  // From allocators of their own.
  struct Sources {
    TierAllocator& device;
    TierAllocator& host;
    NvmeTier nvme = {};  // where there is a budget for it
  };
  TierArenas(const std::vector<TierBudget>& budgets, const Sources& sources);

  // FailedPrecondition where the worker has no such tier.
  absl::StatusOr<Arena*> Find(Tier tier) const;

  const NvmeTier& nvme() const { return nvme_; }

  // Bytes in use, over all tiers.
  size_t used() const;

 private:
  const NvmeTier nvme_;
  std::map<Tier, std::unique_ptr<Arena>> arenas_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_TIER_ARENAS_H_
