#include "scheduler/planner/choose_backends.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/plan/copies.h"
#include "proto/plan/groups.h"
#include "proto/plan/islands.h"
#include "proto/plan/mesh.h"
#include "proto/plan/ways.h"

namespace troupe {

namespace {

using Ranks = std::vector<int>;

bool ShareMemory(const std::vector<WorkerDescription>& workers,
                 const Ranks& ranks) {
  const std::string& domain = workers.at(ranks.front()).memory_domain();
  return !domain.empty() &&
         std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
           return workers.at(rank).memory_domain() == domain;
         });
}

// Whether NCCL refuses to join them, as far as workers say: of a host it joins
// no two ranks of one GPU.
bool ShareAGpu(const std::vector<WorkerDescription>& workers,
               const Ranks& ranks) {
  absl::flat_hash_set<std::pair<absl::string_view, absl::string_view>> gpus;
  for (const int rank : ranks) {
    const Gpu& gpu = workers.at(rank).gpu();
    gpus.emplace(gpu.uuid(), gpu.nccl_host());
  }
  return gpus.size() < ranks.size();
}

// Whether it has the same bits over any backend: sums of two do in any order.
bool MayChangeBackend(const Group::Level& level) {
  return level.in_order() || level.size() == 2;
}

const char* HostBackend(const std::vector<WorkerDescription>& workers,
                        const Ranks& ranks) {
  return ShareMemory(workers, ranks) ? "shared_memory" : "gloo";
}

// Over which each communicator of a level goes, of these members of a group.
Group::Carrier::OfLevel LevelCarrier(
    const std::vector<WorkerDescription>& workers, const Ranks& ranks,
    const Group::Level& level) {
  const int members = static_cast<int>(ranks.size());
  std::vector<const char*> backends(CountOn(level, members));
  for (int m = 0; m < members; ++m) {
    if (PlaceOn(level, m) != 0) continue;
    if (!MayChangeBackend(level)) {
      backends[NumberOn(level, m)] = "gloo";
      continue;
    }
    Ranks of_level;
    for (const int member : MembersOn(level, m)) {
      of_level.push_back(ranks[member]);
    }
    backends[NumberOn(level, m)] = HostBackend(workers, of_level);
  }
  const absl::string_view first = backends.front();
  const bool alike = std::all_of(
      backends.begin(), backends.end(),
      [&](const char* backend) { return absl::string_view(backend) == first; });
  Group::Carrier::OfLevel carrier;
  if (alike) backends.resize(1);
  for (const char* const backend : backends) carrier.add_backends(backend);
  return carrier;
}

Group::Carrier CarrierFor(const std::vector<WorkerDescription>& workers,
                          const Ranks& ranks, const Group& group) {
  Group::Carrier carrier;
  // What moves may lie in the host's memory.
  const bool on_gpus =
      workers.at(ranks.front()).has_gpu() && !IsCopiesGroup(group);
  if (on_gpus && group.levels().empty() && !ShareAGpu(workers, ranks)) {
    carrier.set_backend("nccl");
    return carrier;
  }
  carrier.set_backend(HostBackend(workers, ranks));
  carrier.set_staged(on_gpus);
  for (const Group::Level& level : group.levels()) {
    *carrier.add_levels() = LevelCarrier(workers, ranks, level);
  }
  return carrier;
}

// No message of a plan has a map: equal ones serialise to equal bytes.
bool SameCarrier(const Group::Carrier& a, const Group::Carrier& b) {
  if (a.levels().empty() && b.levels().empty()) {
    return a.backend() == b.backend() && a.staged() == b.staged();
  }
  return a.SerializeAsString() == b.SerializeAsString();
}

// Ranks of an island that hold the same sum it with their own peers: over one
// backend, in one order, so that they hold the same afterwards.
void CarryAlike(Group& group) {
  Group::Carrier all;
  all.set_backend("gloo");
  for (const Group::Carrier& carrier : group.carriers()) {
    if (carrier.staged() || carrier.backend() == "nccl") all.set_staged(true);
  }
  group.clear_carriers();
  *group.add_carriers() = all;
}

}  // namespace

bool AnyShareAGpu(const std::vector<WorkerDescription>& workers) {
  Ranks on_gpus;
  for (size_t rank = 0; rank < workers.size(); ++rank) {
    if (workers[rank].has_gpu()) on_gpus.push_back(static_cast<int>(rank));
  }
  return ShareAGpu(workers, on_gpus);
}

void ChooseBackends(const std::vector<WorkerDescription>& workers,
                    const Mesh& mesh, Groups& groups) {
  for (Group& group : groups) {
    std::vector<Ranks> members(GroupCount(mesh, group));
    const std::vector<int> numbers = GroupNumbers(mesh, group);
    for (size_t r = 0; r < numbers.size(); ++r) {
      if (numbers[r] >= 0) members[numbers[r]].push_back(static_cast<int>(r));
    }
    bool alike = true;
    for (const Ranks& ranks : members) {
      *group.add_carriers() = CarrierFor(workers, ranks, group);
      alike &= SameCarrier(group.carriers(0),
                           group.carriers(group.carriers_size() - 1));
    }
    if (alike) group.mutable_carriers()->DeleteSubrange(1, members.size() - 1);
    if (!alike && group.name() == kIslandsGroup) CarryAlike(group);
  }
}

}  // namespace troupe
