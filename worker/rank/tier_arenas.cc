#include "worker/rank/tier_arenas.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace troupe {

std::string TierName(Tier tier) {
  return absl::AsciiStrToLower(Tier_Name(tier));
}

TierArenas::TierArenas(const std::vector<TierBudget>& budgets,
                       TierAllocator& allocator)
    : TierArenas(budgets, {.device = allocator, .host = allocator}) {}

TierArenas::TierArenas(const std::vector<TierBudget>& budgets,
                       const Allocators& allocators) {
  for (const TierBudget& budget : budgets) {
    arenas_[budget.tier()] = std::make_unique<Arena>(
        TierName(budget.tier()), budget.bytes(),
        budget.tier() == DEVICE ? allocators.device : allocators.host);
  }
}

absl::StatusOr<Arena*> TierArenas::Find(Tier tier) const {
  const auto found = arenas_.find(tier);
  if (found == arenas_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the plan uses tier ", TierName(tier), ", which this worker lacks"));
  }
  return found->second.get();
}

size_t TierArenas::used() const {
  size_t bytes = 0;
  for (const auto& [tier, arena] : arenas_) bytes += arena->used();
  return bytes;
}

}  // namespace troupe
