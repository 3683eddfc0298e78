#include "scheduler/planner/group_hosts.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "proto/plan/groups.h"
#include "proto/plan/mesh.h"

namespace troupe {

GroupHosts::GroupHosts(const std::vector<WorkerDescription>& workers,
                       const Mesh& mesh) {
  absl::flat_hash_map<absl::string_view, int> numbers;
  for (int r = 0; r < MeshSize(mesh); ++r) {
    host_of_.push_back(
        numbers
            .try_emplace(workers.at(r).host(), static_cast<int>(numbers.size()))
            .first->second);
  }
  hosts_ = static_cast<int>(numbers.size());
}

std::vector<std::vector<int>> GroupHosts::Of(const Mesh& mesh,
                                             const Group& group) const {
  std::vector<std::vector<int>> hosts(GroupCount(mesh, group));
  const std::vector<int> numbers = GroupNumbers(mesh, group);
  for (size_t r = 0; r < numbers.size(); ++r) {
    if (numbers[r] >= 0) hosts[numbers[r]].push_back(host_of_[r]);
  }
  return hosts;
}

std::vector<int> HostsInOrder(const std::vector<int>& hosts) {
  absl::flat_hash_map<int, int> numbers;
  std::vector<int> in_order;
  for (const int host : hosts) {
    in_order.push_back(
        numbers.try_emplace(host, static_cast<int>(numbers.size()))
            .first->second);
  }
  return in_order;
}

bool SpanHosts(const std::vector<int>& hosts) {
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](int host) { return host != hosts.front(); });
}

}  // namespace troupe
