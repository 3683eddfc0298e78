#include "scheduler/cluster/hand_out.h"

#include <algorithm>
#include <set>

#include "proto/plan/find_program.h"

namespace troupe {
SchedulerMessage Completed(const SendToWorker& send,
                           const JobCompiler& compiler) {
  SchedulerMessage message = send.message;
  if (send.hand_out == nullptr) return message;
  Assignment& start = *message.mutable_start();
  start.MergeFrom(send.hand_out->assignment);
  *start.mutable_plan() =
      compiler.PlanOfRank(*send.hand_out->plan, start.ref().rank());
  return message;
}

std::vector<bool> RanksThatCheckData(const Plan& plan,
                                     const std::vector<std::string>& hosts) {
  std::vector<bool> checks(hosts.size());
  std::set<std::string> checked;
  const int ranks = std::min<int>(plan.ranks_size(), hosts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    checks[rank] =
        LoadsData(plan.ranks(rank)) && checked.insert(hosts[rank]).second;
  }
  return checks;
}

}  // namespace troupe
