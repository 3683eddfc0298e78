// What the scheduler does for the checkpoints of ranks that are threads: hands
// rank 0 the shards of all, and says what became of a checkpoint. It decides
// with the scheduler's own gather.
#ifndef TROUPE_TESTS_EQUIVALENCE_SHARD_BOARD_H_
#define TROUPE_TESTS_EQUIVALENCE_SHARD_BOARD_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "scheduler/cluster/checkpoint_gather.h"
#include "worker/engine/rank_listener.h"

namespace troupe {

// Thread-safe.
class ShardBoard {
 public:
  explicit ShardBoard(int ranks) : ranks_(ranks), gather_(ranks) {}

  void Add(int rank, const WrittenShard& shard);
  void AddUnwritten(int rank, int64_t step, const std::string& error);
  // Of rank 0: the shards of all; nothing where it is given up.
  absl::StatusOr<absl::optional<std::vector<ShardRecord>>> Await(int64_t step);
  void Commit(int64_t step);
  absl::StatusOr<CheckpointEnd> AwaitEnd(int rank, int64_t step);
  // Ends all waits.
  void Fail();

 private:
  using RankAndStep = std::pair<int, int64_t>;

  void Answer(int64_t step, GatheredCheckpoint gathered)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int ranks_;
  absl::Mutex mutex_;
  CheckpointGather gather_ ABSL_GUARDED_BY(mutex_);
  std::map<int, int64_t> writes_ ABSL_GUARDED_BY(mutex_);  // ended, by rank
  std::map<int64_t, std::vector<ShardRecord>> shards_ ABSL_GUARDED_BY(mutex_);
  std::map<RankAndStep, std::string> given_up_ ABSL_GUARDED_BY(mutex_);
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_SHARD_BOARD_H_
