#include "scheduler/cluster/choose_recovery.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "proto/plan/copies.h"
#include "scheduler/cluster/placement.h"

namespace troupe {
namespace {

const KeptCopy* Find(const std::vector<KeptCopy>& kept, int64_t step,
                     bool peer) {
  for (const KeptCopy& copy : kept) {
    if (copy.state().step() != step) continue;
    if (peer ? copy.peer() : copy.own()) return &copy;
  }
  return nullptr;
}

// Nothing: nobody has it.
absl::optional<Handover> HandoverTo(const Plan& plan, const KeptByRank& kept,
                                    int64_t step, int rank) {
  Handover handover;
  handover.set_to(rank);
  for (const int other : RanksAlike(plan, rank)) {
    if (Find(kept[other], step, /*peer=*/false) == nullptr) continue;
    handover.set_from(other);
    return handover;
  }
  const int mirror = MirrorOf(plan.mesh(), rank);
  if (Find(kept[mirror], step, /*peer=*/true) == nullptr) return absl::nullopt;
  handover.set_from(mirror);
  handover.set_peer(true);
  return handover;
}

absl::optional<Recovery> RecoveryAt(const Plan& plan, const KeptByRank& kept,
                                    const KeptState& state) {
  Recovery recovery;
  *recovery.mutable_state() = state;
  for (size_t r = 0; r < kept.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (Find(kept[r], state.step(), /*peer=*/false) != nullptr) continue;
    absl::optional<Handover> handover =
        HandoverTo(plan, kept, state.step(), rank);
    if (!handover.has_value()) return absl::nullopt;
    *recovery.add_handovers() = *std::move(handover);
  }
  return recovery;
}

// By tier, what the rank needs.
bool HasRoomFor(const WorkerDescription& worker, const RankPrediction& rank) {
  if (worker.budgets().empty()) return true;
  std::map<Tier, int64_t> room;
  for (const TierBudget& budget : worker.budgets()) {
    room[budget.tier()] += budget.bytes();
  }
  for (const MemoryItem& item : rank.memory()) {
    room[item.tier()] -= item.bytes();
  }
  return std::all_of(room.begin(), room.end(),
                     [](const auto& tier) { return tier.second >= 0; });
}

}  // namespace

absl::optional<Recovery> ChooseRecovery(const Plan& plan,
                                        const KeptByRank& kept) {
  std::map<int64_t, KeptState, std::greater<>> states;  // newest first
  for (const std::vector<KeptCopy>& of_rank : kept) {
    for (const KeptCopy& copy : of_rank) {
      states[copy.state().step()] = copy.state();
    }
  }
  for (const auto& [step, state] : states) {
    absl::optional<Recovery> recovery = RecoveryAt(plan, kept, state);
    if (recovery.has_value()) return recovery;
  }
  return absl::nullopt;
}

std::vector<const Worker*> FillPlaces(const std::vector<VacantPlace>& places,
                                      const Prediction& prediction,
                                      std::vector<const Worker*> idle) {
  std::sort(idle.begin(), idle.end(), [](const Worker* a, const Worker* b) {
    return NaturalLess(a->name(), b->name());
  });
  std::vector<const Worker*> filled(places.size());
  std::set<const Worker*> taken;
  // Those who find one on the old host come first.
  for (const bool same_host : {true, false}) {
    for (size_t p = 0; p < places.size(); ++p) {
      const VacantPlace& place = places[p];
      for (const Worker* worker : idle) {
        if (filled[p] != nullptr) break;
        const WorkerDescription& description = worker->status.description();
        const bool fits =
            taken.count(worker) == 0 &&
            (!same_host || description.host() == place.lost.host()) &&
            description.has_gpu() == place.lost.has_gpu() &&
            (place.rank >= prediction.ranks_size() ||
             HasRoomFor(description, prediction.ranks(place.rank)));
        if (!fits) continue;
        filled[p] = worker;
        taken.insert(worker);
      }
    }
  }
  return filled;
}

}  // namespace troupe
