#include "scheduler/planner/choose_backends.h"

#include <algorithm>
#include <set>
#include <string>

#include "proto/base/check.h"

namespace troupe {

namespace {

bool ShareMemory(const std::vector<WorkerDescription>& workers,
                 const Group& group) {
  const std::string& domain = workers.at(group.ranks(0)).memory_domain();
  return !domain.empty() &&
         std::all_of(group.ranks().begin(), group.ranks().end(), [&](int rank) {
           return workers.at(rank).memory_domain() == domain;
         });
}

bool ShareAGpu(const std::vector<WorkerDescription>& workers,
               const Group& group) {
  std::set<std::string> uuids;
  for (const int rank : group.ranks()) {
    uuids.insert(workers.at(rank).gpu().uuid());
  }
  return static_cast<int>(uuids.size()) < group.ranks_size();
}

}  // namespace

void ChooseBackends(const std::vector<WorkerDescription>& workers, Plan& plan) {
  for (Group& group : *plan.mutable_groups()) {
    CHECK(!group.ranks().empty()) << "group " << group.name();
    const bool on_gpus = workers.at(group.ranks(0)).has_gpu();
    if (on_gpus && !ShareAGpu(workers, group)) {
      group.set_backend("nccl");
      continue;
    }
    group.set_backend(ShareMemory(workers, group) ? "shared_memory" : "gloo");
    group.set_staged(on_gpus);
  }
}

}  // namespace troupe
