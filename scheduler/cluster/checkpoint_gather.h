// Waits until every rank has written its shard of a checkpoint. A checkpoint
// that some rank never writes is given up when later ones take its place. Steps
// ascend: what is heard again of one that is past changes nothing.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
#define TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_

#include <map>
#include <optional>

#include "proto/worker.pb.h"

namespace troupe {

class CheckpointGather {
 public:
  explicit CheckpointGather(int ranks) : ranks_(ranks) {}

  // When the last shard of its step has come: the message for rank 0, but for
  // its `ref`, with the shards in the order of their ranks.
  std::optional<CheckpointCommit> Add(const CheckpointShard& shard);

  // Rank 0 has committed this step. False: that is known.
  bool Committed(int64_t step);
  bool IsCommitted(int64_t step) const { return step <= committed_; }
  // The last step that was committed; -1: none.
  int64_t committed() const { return committed_; }

  static constexpr int kOpenMax = 8;

 private:
  const int ranks_;
  int64_t gathered_ = -1;  // the last step whose shards were all there
  int64_t committed_ = -1;
  std::map<int64_t, std::map<int, CheckpointShard>> open_;  // step, rank
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
