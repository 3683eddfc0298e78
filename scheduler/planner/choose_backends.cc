#include "scheduler/planner/choose_backends.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "proto/plan/copies.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"

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

// `in_host`: what moves lies in the host's memory.
Group::Carrier CarrierFor(const std::vector<WorkerDescription>& workers,
                          const Ranks& ranks, bool in_host) {
  Group::Carrier carrier;
  const bool on_gpus = workers.at(ranks.front()).has_gpu() && !in_host;
  if (on_gpus && !ShareAGpu(workers, ranks)) {
    carrier.set_backend("nccl");
    return carrier;
  }
  carrier.set_backend(ShareMemory(workers, ranks) ? "shared_memory" : "gloo");
  carrier.set_staged(on_gpus);
  return carrier;
}

bool SameCarrier(const Group::Carrier& a, const Group::Carrier& b) {
  return a.backend() == b.backend() && a.staged() == b.staged();
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
      *group.add_carriers() = CarrierFor(workers, ranks, IsCopiesGroup(group));
      alike &= SameCarrier(group.carriers(0),
                           group.carriers(group.carriers_size() - 1));
    }
    if (alike) group.mutable_carriers()->DeleteSubrange(1, members.size() - 1);
  }
}

}  // namespace troupe
