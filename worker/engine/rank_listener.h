// What a rank tells the world while it trains, and the one thing that it asks.
// The service sends these to the scheduler; tests collect them.
#ifndef TROUPE_WORKER_ENGINE_RANK_LISTENER_H_
#define TROUPE_WORKER_ENGINE_RANK_LISTENER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/status.pb.h"
#include "proto/timeline.pb.h"
#include "proto/worker.pb.h"

namespace troupe {

// This rank's part of a checkpoint, on disk.
struct WrittenShard {
  int64_t step = 0;
  ShardRecord record;
};

// What became of a checkpoint.
struct CheckpointEnd {
  // It is there, and the scheduler has that on its disk: else an attempt that
  // goes on from what is there may not find it, and older ones must stay.
  bool stored = false;
  // Not empty: it could not be written, and why. All ranks have stopped writing
  // it.
  std::string given_up;
};

// Called by the train loop's thread; OnShardWritten and what follows it by the
// thread that writes checkpoints, which is another one where they are written
// in the background. One call of those at a time, and it may come during any
// other. An error ends the run.
class RankListener {
 public:
  virtual ~RankListener() = default;

  // Something that the job's user should hear of, before OnReady; the same on
  // all ranks, as far as they see the same folders: one of them is heard.
  virtual absl::Status OnWarning(const std::string& warning) {
    return absl::OkStatus();
  }

  // The same at any other time, and of this rank alone. Any thread.
  virtual void OnNotice(const std::string& notice) {}

  // The checkpoint from which it begins, before OnReady; of rank 0 alone.
  virtual void OnResumed(const std::string& checkpoint) {}

  // The rank has its memory, its data and its peers.
  virtual absl::Status OnReady(int64_t first_step) = 0;

  // `sums`: Plan.sums over all ranks, element by element, the same to the bit
  // on each of them. `timeline` is null where the step is not traced.
  virtual absl::Status OnStep(const StepRecord& record,
                              absl::Span<const double> sums,
                              const RankTimeline* timeline) = 0;

  virtual absl::Status OnShardWritten(const WrittenShard& shard) = 0;
  // In its place: it could not be written, nor, on rank 0, the checkpoint be
  // committed.
  virtual absl::Status OnUnwritten(int64_t step, const std::string& error) = 0;

  // Rank 0: waits until every rank has written its shard of this step, and
  // gives back their records; nothing where some could not: AwaitEnd says that.
  // Must return once the run is aborted.
  virtual absl::StatusOr<absl::optional<std::vector<ShardRecord>>> AwaitShards(
      int64_t step) = 0;

  // Rank 0: the checkpoint is there, and so is what it makes obsolete.
  virtual absl::Status OnCommitted(const CheckpointRecord& checkpoint) = 0;

  // All ranks, rank 0 too: waits until it is known that rank 0 has said so, or
  // that the checkpoint is given up. A rank that is done with its shard would
  // else wait in a collective, against its deadline, for one that still writes;
  // and rank 0 would remove what the job goes on from if it is lost now. Must
  // return once the run is aborted.
  virtual absl::StatusOr<CheckpointEnd> AwaitEnd(int64_t step) = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_RANK_LISTENER_H_
