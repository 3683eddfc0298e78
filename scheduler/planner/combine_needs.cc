#include "scheduler/planner/combine_needs.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "proto/base/check.h"
#include "proto/plan/memory.h"
#include "scheduler/simulate/gpu_scratch.h"

namespace troupe {
namespace {

double Total(const BytesByTier& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

// Of a role's items, all zeros where it has none of this.
BytesByTier Find(const std::map<std::string, BytesByTier>& items,
                 const std::string& item) {
  const auto found = items.find(item);
  return found == items.end() ? BytesByTier{} : found->second;
}

BytesByTier CombineItem(const BytesByTier& without,
                        const std::vector<BytesByTier>& with) {
  const double before = Total(without);
  BytesByTier bytes = without;
  double left = 1;
  for (const BytesByTier& changed : with) {
    const double after = Total(changed);
    if (before > 0) left *= after / before;
    // As much of it as before, where it lies then.
    const double scale = before == 0 ? 1 : after == 0 ? 0 : before / after;
    for (size_t tier = 0; tier < bytes.size(); ++tier) {
      if (scale > 0) bytes[tier] += changed[tier] * scale - without[tier];
    }
  }
  for (double& in_tier : bytes) in_tier = std::max(0.0, in_tier * left);
  return bytes;
}

}  // namespace

MemoryNeed NeedOf(const Plan& plan,
                  const std::vector<WorkerDescription>& workers) {
  MemoryNeed need;
  for (const Role& role : plan.roles()) {
    std::map<std::string, BytesByTier>& items = need.emplace_back();
    const auto add = [&items](const MemoryItem& item) {
      const auto* const tier = std::find(std::begin(kMemoryTiers),
                                         std::end(kMemoryTiers), item.tier());
      CHECK(tier != std::end(kMemoryTiers));
      items[item.item()][tier - std::begin(kMemoryTiers)] +=
          static_cast<double>(item.bytes());
    };
    for (const MemoryItem& item : MemoryItems(role)) add(item);
    if (!workers.at(0).has_gpu()) continue;
    for (const MemoryItem& item : GpuScratchItems(plan)) add(item);
  }
  return need;
}

std::vector<double> SumOf(const MemoryNeed& need) {
  std::vector<double> sum;
  for (const std::map<std::string, BytesByTier>& items : need) {
    BytesByTier of_role = {};
    for (const auto& [_, bytes] : items) {
      for (size_t tier = 0; tier < bytes.size(); ++tier) {
        of_role[tier] += bytes[tier];
      }
    }
    sum.insert(sum.end(), of_role.begin(), of_role.end());
  }
  return sum;
}

MemoryNeed Combine(const MemoryNeed& without,
                   const std::vector<const MemoryNeed*>& with) {
  MemoryNeed need;
  for (size_t role = 0; role < without.size(); ++role) {
    std::set<std::string> items;
    for (const auto& [item, _] : without[role]) items.insert(item);
    for (const MemoryNeed* const changed : with) {
      for (const auto& [item, _] : changed->at(role)) items.insert(item);
    }
    std::map<std::string, BytesByTier>& of_role = need.emplace_back();
    for (const std::string& item : items) {
      std::vector<BytesByTier> changes;
      for (const MemoryNeed* const changed : with) {
        changes.push_back(Find(changed->at(role), item));
      }
      of_role[item] = CombineItem(Find(without[role], item), changes);
    }
  }
  return need;
}

}  // namespace troupe
