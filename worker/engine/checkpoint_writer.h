// One rank's side of writing checkpoints: its own shard file, and on rank 0 the
// commit, once all ranks have written theirs (storage/checkpoint/commit.h says
// what makes a checkpoint whole). Errors name the path and what the disk said;
// checkpoints that were there before stay as they are.
#ifndef TROUPE_WORKER_ENGINE_CHECKPOINT_WRITER_H_
#define TROUPE_WORKER_ENGINE_CHECKPOINT_WRITER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/base/clock.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "storage/checkpoint/commit.h"
#include "storage/engine/engine.h"
#include "worker/engine/background_writer.h"
#include "worker/engine/rank_listener.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct CheckpointWriterOptions {
  // The same on all ranks and unique to this start of the job: letters, digits
  // and '-'.
  std::string token;
  std::vector<CarriedFile> carried;    // rank 0's go into each checkpoint
  CheckpointFolder* folder = nullptr;  // rank 0's; told of each that is there
  // Rank 0's, and must be there: by it what is obsolete is removed, beside the
  // rank.
  BackgroundWriter* removal = nullptr;
  // This rank checks its host's tokens, and does not know yet that they hold.
  bool data_unchecked = false;
};

// A rank's state after `step` steps, as SNAPSHOT collected it.
struct Snapshot {
  int64_t step = 0;
  int64_t samples_consumed = 0;  // the data position
  ManifestLossScale loss_scale = {};
  std::vector<StateTensor> tensors;  // borrowed from the rank's memory
};

// One thread, which need not be the train loop's: of `state` only what stays
// while the rank lives is read.
class CheckpointWriter {
 public:
  // Borrows all; the engine must be idle whenever Write is called.
  CheckpointWriter(const CheckpointWriterOptions& options,
                   const RankState& state, const RankDisk& disk,
                   const Clock& clock, RankListener& listener);

  // Returns when the checkpoint is committed, and known to be. Until then older
  // ones keep their names, for whoever goes on from them; then they lose those,
  // and are removed while the rank goes on: the next Write waits for that.
  // Where it is known and not stored, older ones of this job stay until one is.
  // Where its own shard or the commit fails, what was written of the checkpoint
  // is removed. An error, too, where checkpoints that this run overwrites keep
  // their names.
  absl::Status Write(const Snapshot& snapshot);

  // The last part of it, for the checkpoint of `step` at `path`, which is known
  // to be committed. On rank 0, where nothing is being removed.
  absl::Status RemoveOld(int64_t step, const std::string& path);

 private:
  absl::StatusOr<ShardFile> WriteOwnShard(
      const CheckpointAttempt& attempt,
      const std::vector<StateTensor>& tensors);
  absl::Status Commit(const CheckpointAttempt& attempt,
                      const Snapshot& snapshot, int64_t begin_ns);
  // Of the job's own checkpoints `keep` stay; 0: all.
  absl::Status Remove(int64_t step, const std::string& path, int keep);
  CheckpointAttempt AttemptOf(int64_t step) const;

  const CheckpointWriterOptions options_;
  const RankState& state_;
  const RankDisk disk_;
  const Clock& clock_;
  RankListener& listener_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CHECKPOINT_WRITER_H_
