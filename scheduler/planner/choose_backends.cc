#include "scheduler/planner/choose_backends.h"

#include <algorithm>
#include <string>

#include "proto/base/check.h"

namespace troupe {

void ChooseBackends(const std::vector<WorkerDescription>& workers, Plan& plan) {
  for (Group& group : *plan.mutable_groups()) {
    CHECK(!group.ranks().empty()) << "group " << group.name();
    const std::string& domain = workers.at(group.ranks(0)).memory_domain();
    const bool shared =
        !domain.empty() &&
        std::all_of(group.ranks().begin(), group.ranks().end(), [&](int rank) {
          return workers.at(rank).memory_domain() == domain;
        });
    group.set_backend(shared ? "shared_memory" : "gloo");
  }
}

}  // namespace troupe
