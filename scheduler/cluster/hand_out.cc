#include "scheduler/cluster/hand_out.h"

#include <algorithm>
#include <set>

namespace troupe {

SchedulerMessage Completed(const SendToWorker& send,
                           const JobCompiler& compiler) {
  SchedulerMessage message = send.message;
  if (send.hand_out == nullptr) return message;
  const auto plan_of = [&](int rank) {
    return compiler.PlanOfRank(send.hand_out->PlanToSend(compiler), rank);
  };
  if (message.has_save_copies()) {
    SaveCopies& saves = *message.mutable_save_copies();
    for (CopyToSave& copy : *saves.mutable_copies()) {
      *copy.mutable_plan() = plan_of(copy.plan().rank());
    }
    if (saves.has_commits()) {
      *saves.mutable_commits() = plan_of(saves.commits().rank());
    }
    return message;
  }
  Assignment& start = *message.mutable_start();
  start.MergeFrom(send.hand_out->assignment);
  *start.mutable_plan() = plan_of(start.ref().rank());
  return message;
}

std::vector<bool> RanksThatCheckData(const std::vector<bool>& loads_data,
                                     const std::vector<std::string>& hosts) {
  std::vector<bool> checks(hosts.size());
  std::set<std::string> checked;
  const size_t ranks = std::min(loads_data.size(), hosts.size());
  for (size_t rank = 0; rank < ranks; ++rank) {
    checks[rank] = loads_data[rank] && checked.insert(hosts[rank]).second;
  }
  return checks;
}

}  // namespace troupe
