// Checkpoints that ranks write, until rank 0 is asked to commit them, and those
// that could not be written: a full disk costs no training. The ranks go on,
// and try again after a while; at the end of the job, and where it is saved to
// stop, they keep the state and try until it is written or somebody cancels.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_SHARDS_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_SHARDS_H_

#include <vector>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_verdicts.h"

namespace troupe {

class RunShards {
 public:
  // Borrows all but the limits.
  RunShards(const Limits& limits, JobTable& jobs, RunVerdicts& verdicts)
      : limits_(limits), jobs_(jobs), verdicts_(verdicts) {}

  // --- A rank that the run has says this ---

  void Shard(Job& job, const CheckpointShard& shard, absl::Time now,
             Actions& actions);
  void Unwritten(Job& job, const CheckpointUnwritten& unwritten, absl::Time now,
                 Actions& actions);

 private:
  // What follows from an answer.
  void Gathered(Job& job, GatheredCheckpoint gathered, absl::Time now,
                Actions& actions);
  // All ranks have stopped writing it, and hear that.
  void GiveUpCheckpoint(Job& job,
                        const std::vector<CheckpointUnwritten>& unwritten,
                        absl::Time now, Actions& actions);

  const Limits limits_;
  JobTable& jobs_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_SHARDS_H_
