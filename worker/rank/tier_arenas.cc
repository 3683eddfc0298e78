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
                       const Sources& sources)
    : nvme_(sources.nvme) {
  for (const TierBudget& budget : budgets) {
    const std::string name = TierName(budget.tier());
    std::unique_ptr<Arena>& arena = arenas_[budget.tier()];
    if (budget.tier() == NVME) {
      arena = std::make_unique<Arena>(name, budget.bytes());
    } else {
      arena = std::make_unique<Arena>(
          name, budget.bytes(),
          budget.tier() == DEVICE ? sources.device : sources.host);
    }
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
