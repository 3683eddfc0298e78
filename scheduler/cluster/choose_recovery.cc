#include "scheduler/cluster/choose_recovery.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "proto/plan/copies.h"
#include "scheduler/cluster/place_ranks.h"

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
  const std::vector<int> alike = RanksAlike(plan, rank);
  for (const int other : alike) {
    if (Find(kept[other], step, /*peer=*/false) == nullptr) continue;
    handover.set_from(other);
    return handover;
  }
  // Its own mirror, or that of a rank that holds the same.
  std::vector<int> mirrored = {rank};
  mirrored.insert(mirrored.end(), alike.begin(), alike.end());
  for (const int other : mirrored) {
    const int mirror = MirrorOf(plan, other);
    if (Find(kept[mirror], step, /*peer=*/true) == nullptr) continue;
    handover.set_from(mirror);
    handover.set_peer(true);
    return handover;
  }
  return absl::nullopt;
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

// Idle workers in vacant places.
class Seating {
 public:
  // Borrows both.
  Seating(const std::vector<VacantPlace>& places, const Prediction& prediction)
      : places_(places), prediction_(prediction), filled_(places.size()) {}

  // kApart: on the same host, or where the copies are not.
  enum class On { kSameHost, kHostWithoutCopies, kApart, kAnyHost };
  void TakeFree(size_t place, On on,
                const std::vector<const Worker*>& workers) {
    for (const Worker* worker : workers) {
      if (filled_[place] != nullptr) return;
      if (Is(on, worker->status.description().host(), places_[place]) &&
          place_of_.count(worker) == 0 && Fits(*worker, place)) {
        Put(worker, place);
      }
    }
  }
  // Fills the places that are not yet. One that has another place may move to a
  // free one, and so on (an augmenting path of a bipartite matching), as long
  // as all that move sit so. Workers that were asked in vain for one place
  // cannot help another one either, and are not asked again.
  void TakeAny(On on, const std::vector<const Worker*>& workers) {
    std::set<const Worker*> asked;
    for (size_t place = 0; place < places_.size(); ++place) {
      if (filled_[place] != nullptr) continue;
      std::vector<const Worker*> for_this;
      if (!MakeRoom(place, on, workers, asked, for_this)) continue;
      for (const Worker* worker : for_this) asked.erase(worker);
    }
  }
  const std::vector<const Worker*>& filled() const { return filled_; }

 private:
  static bool Is(On on, const std::string& host, const VacantPlace& place) {
    switch (on) {
      case On::kSameHost:
        return host == place.lost.host();
      case On::kHostWithoutCopies:
        return place.copies_on.count(host) == 0;
      case On::kApart:
        return host == place.lost.host() || place.copies_on.count(host) == 0;
      case On::kAnyHost:
        break;
    }
    return true;
  }
  bool Fits(const Worker& worker, size_t place) const {
    const WorkerDescription& description = worker.status.description();
    const int rank = places_[place].rank;
    return description.has_gpu() == places_[place].lost.has_gpu() &&
           (rank >= prediction_.ranks_size() ||
            HasRoomFor(description, prediction_.ranks(rank)));
  }
  void Put(const Worker* worker, size_t place) {
    filled_[place] = worker;
    place_of_[worker] = place;
  }
  bool MakeRoom(size_t place, On on, const std::vector<const Worker*>& workers,
                std::set<const Worker*>& asked,
                std::vector<const Worker*>& for_this) {
    for (const Worker* worker : workers) {
      if (!Is(on, worker->status.description().host(), places_[place]) ||
          !Fits(*worker, place) || !asked.insert(worker).second) {
        continue;
      }
      for_this.push_back(worker);
      const auto sits = place_of_.find(worker);
      if (sits == place_of_.end() ||
          MakeRoom(sits->second, on, workers, asked, for_this)) {
        Put(worker, place);
        return true;
      }
    }
    return false;
  }

  const std::vector<VacantPlace>& places_;
  const Prediction& prediction_;
  std::vector<const Worker*> filled_;
  std::map<const Worker*, size_t> place_of_;
};

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

std::set<std::string> HostsOfCopies(const Plan& plan, int rank,
                                    const std::vector<std::string>& hosts) {
  if (KeepsMirrors(plan)) {
    return {hosts[MirrorOf(plan, rank)], hosts[MirroredBy(plan, rank)]};
  }
  std::set<std::string> alike;
  for (const int other : RanksAlike(plan, rank)) alike.insert(hosts[other]);
  // On several of them the state is elsewhere wherever this rank is.
  return alike.size() == 1 ? alike : std::set<std::string>();
}

std::vector<const Worker*> FillPlaces(const std::vector<VacantPlace>& places,
                                      const Prediction& prediction,
                                      std::vector<const Worker*> idle,
                                      const FailedStarts& failed) {
  std::sort(idle.begin(), idle.end(), [](const Worker* a, const Worker* b) {
    return NaturalLess(a->name(), b->name());
  });
  std::vector<const Worker*> trusted;
  for (const Worker* worker : Without(idle, failed)) {
    if (worker->doubt == 0) trusted.push_back(worker);
  }
  Seating seating(places, prediction);
  // Those that find one on the old host come first.
  for (const auto* workers : {&trusted, &idle}) {
    for (const auto on :
         {Seating::On::kSameHost, Seating::On::kHostWithoutCopies}) {
      for (size_t p = 0; p < places.size(); ++p) {
        seating.TakeFree(p, on, *workers);
      }
    }
    // Some change places before one takes a place on a host with its copies.
    seating.TakeAny(Seating::On::kApart, *workers);
    for (size_t p = 0; p < places.size(); ++p) {
      seating.TakeFree(p, Seating::On::kAnyHost, *workers);
    }
  }
  seating.TakeAny(Seating::On::kAnyHost, idle);
  return seating.filled();
}

}  // namespace troupe
