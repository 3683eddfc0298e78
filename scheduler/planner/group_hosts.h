// On which hosts the members of groups are.
#ifndef TROUPE_SCHEDULER_PLANNER_GROUP_HOSTS_H_
#define TROUPE_SCHEDULER_PLANNER_GROUP_HOSTS_H_

#include <vector>

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Hosts are numbered as their first ranks come; workers[r] fills rank r.
class GroupHosts {
 public:
  GroupHosts(const std::vector<WorkerDescription>& workers, const Mesh& mesh);

  int hosts() const { return hosts_; }

  // Of each group of that name, by its number: the hosts of its members.
  std::vector<std::vector<int>> Of(const Mesh& mesh, const Group& group) const;

 private:
  std::vector<int> host_of_;  // by rank
  int hosts_ = 0;
};

// Numbered as they come: equal for groups that lie on their hosts alike.
std::vector<int> HostsInOrder(const std::vector<int>& hosts);

bool SpanHosts(const std::vector<int>& hosts);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PLANNER_GROUP_HOSTS_H_
