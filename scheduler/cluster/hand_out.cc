#include "scheduler/cluster/hand_out.h"

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

}  // namespace troupe
