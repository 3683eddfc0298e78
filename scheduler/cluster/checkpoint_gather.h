// Waits until every rank has answered for one checkpoint: that it has written
// its shard, or that it could not (CheckpointUnwritten). When all have, nobody
// writes there any more: the checkpoint is committed, or given up. One that is
// given up may be tried again under the same step. A checkpoint for which some
// rank never answers is forgotten when later ones take its place. Steps ascend:
// what is heard again of one that is past changes nothing.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
#define TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "proto/worker.pb.h"

namespace troupe {

// What follows from an answer; nothing as long as others are to come.
struct GatheredCheckpoint {
  // All have written theirs: the message for rank 0, but for its `ref`, with
  // the shards in the order of their ranks.
  std::optional<CheckpointCommit> commit;
  // The checkpoint is given up, for these could not write: the first that said
  // so first, for its error may be the cause of the others.
  std::vector<CheckpointUnwritten> unwritten;
  // This rank has not heard that the step was given up.
  bool given_up_before = false;
};

class CheckpointGather {
 public:
  explicit CheckpointGather(int ranks) : ranks_(ranks) {}

  GatheredCheckpoint Add(const CheckpointShard& shard);
  // From rank 0 also when its commit has failed.
  GatheredCheckpoint Add(const CheckpointUnwritten& unwritten);

  // A scheduler before this one has given this step up, and not all ranks need
  // have heard of that: the first answer of each is for what is past.
  void GaveUpBefore(int64_t step);

  // Rank 0 has committed this step. False: that is known.
  bool Committed(int64_t step);
  bool IsCommitted(int64_t step) const { return step <= committed_; }
  // The last step that was committed; -1: none.
  int64_t committed() const { return committed_; }

  static constexpr int kOpenMax = 8;

 private:
  // A rank has one answer, its last.
  struct Open {
    void Forget(int rank);

    std::map<int, CheckpointShard> shards;       // by rank
    std::vector<CheckpointUnwritten> unwritten;  // the first heard first
  };

  // Whether the rank answers for what was given up before.
  bool IsOfBefore(int64_t step, int rank);
  GatheredCheckpoint Gathered(int64_t step);
  GatheredCheckpoint GiveUp(int64_t step,
                            std::vector<CheckpointUnwritten> unwritten);

  const int ranks_;
  int64_t gathered_ = -1;  // the last step whose shards were all there
  int64_t committed_ = -1;
  std::map<int64_t, Open> open_;  // by step
  int64_t given_up_before_ = -1;
  std::set<int> unheard_;  // ranks that may not have heard of that
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
