// Waits until every rank has answered for one write of a checkpoint: that its
// shard is there, or that it could not be written (CheckpointUnwritten). When
// all have, nobody writes there any more: the checkpoint is committed, or given
// up. A step that is given up may be written again, so answers are told apart
// by the number of the write, which is the same on all ranks and ascends.
//
// A scheduler that was restarted hears again what ranks have answered last, and
// knows nothing of what the one before gave up. Two things tell it: all answers
// for a write come again, or some rank has answered for a later write. The
// second means that the write before has ended, and rank 0 says what it has
// committed before it answers for the next one.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
#define TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_

#include <cstdint>
#include <map>
#include <optional>
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
  // These ranks have not heard that the write for which they answered last has
  // been given up: each rank's last answer.
  struct Unheard {
    int rank = 0;
    int64_t step = 0;
    int64_t write = 0;
  };
  std::vector<Unheard> unheard;
};

class CheckpointGather {
 public:
  explicit CheckpointGather(int ranks) : ranks_(ranks) {}

  GatheredCheckpoint Add(const CheckpointShard& shard);
  // From rank 0 also when its commit has failed.
  GatheredCheckpoint Add(const CheckpointUnwritten& unwritten);

  // Rank 0 has committed this step. False: that is known.
  bool Committed(int64_t step);
  bool IsCommitted(int64_t step) const { return step <= committed_; }
  // The last step that was committed; -1: none.
  int64_t committed() const { return committed_; }

 private:
  // A rank has one answer, its last, whichever write it is for.
  struct Open {
    void Forget(int rank);

    int64_t step = 0;
    std::map<int, CheckpointShard> shards;       // by rank
    std::vector<CheckpointUnwritten> unwritten;  // the first heard first
  };

  template <typename Answer>
  Open& OpenFor(const Answer& answer);
  GatheredCheckpoint Gathered(int64_t write);
  GatheredCheckpoint GiveUp(int64_t write,
                            std::vector<CheckpointUnwritten> unwritten);
  // Adds the ranks that wait for the end of a write that others have seen.
  void TakeUnheard(GatheredCheckpoint& gathered);

  const int ranks_;
  int64_t gathered_ = 0;    // the last write whose shards were all there
  int64_t given_up_ = 0;    // the last write that was given up
  int64_t committed_ = -1;  // the last step
  int64_t newest_ = 0;      // the last write for which any rank has answered,
  int64_t of_rank_0_ = 0;   // and rank 0
  std::map<int64_t, Open> open_;  // by write
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHECKPOINT_GATHER_H_
