// One rank's side of writing checkpoints: its own shard file, and on rank 0 the
// commit, once all ranks have written theirs (storage/checkpoint/commit.h says
// what makes a checkpoint whole). What the disk does not take is no error: the
// ranks hear why, and when all have stopped writing
// (scheduler/cluster/checkpoint_gather.h); checkpoint_saver.h tries again.
// Checkpoints that were there before stay as they are.
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
  std::string run_id;                  // JobStatus.run_id
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

  // Returns when the checkpoint is committed, and known to be, or given up.
  // Until then older ones keep their names, for attempts that go on from them;
  // then they lose those, and are removed while the rank goes on: the next
  // Write waits for that. Where it is known and not stored, older ones of this
  // job stay until one is. What was written of one that is given up stays, to
  // be written again or discarded. An error where the run is aborted, or the
  // directory another's by now, or the shards of the ranks do not make up the
  // tensors, or anything else than the storage failed (storage_error.h). Where
  // checkpoints that this run overwrites keep their names, that is a notice,
  // once for each cause, and the next checkpoint takes them, or
  // RetryOverwritten.
  absl::StatusOr<CheckpointEnd> Write(const Snapshot& snapshot);

  // Rank 0, others do nothing: removes, while the rank goes on, what was
  // written of a checkpoint that was given up, under a step that is not tried
  // again. REQUIRES that Write was the last call.
  void Discard(int64_t step);

  // The last part of it, for the checkpoint of `step` at `path`, which is known
  // to be committed. On rank 0, where nothing is being removed.
  absl::Status RemoveOld(int64_t step, const std::string& path);

  // Rank 0: those that this run overwrites, and that kept their names after the
  // checkpoint of `step`. The error says which stays, or that the directory is
  // another's by now.
  absl::Status RetryOverwritten(int64_t step);

 private:
  absl::StatusOr<ShardRecord> WriteOwnShard(
      const CheckpointAttempt& attempt,
      const std::vector<StateTensor>& tensors);
  absl::StatusOr<CheckpointEnd> Commit(const CheckpointAttempt& attempt,
                                       const Snapshot& snapshot,
                                       int64_t begin_ns);
  // The disk did not take it: says so, and waits until all ranks have stopped.
  absl::StatusOr<CheckpointEnd> Unwritten(const CheckpointAttempt& attempt,
                                          const absl::Status& why);
  // Gives the space back where the run ends: rank 0 that of all, others theirs.
  template <typename T>
  absl::StatusOr<T> OrGiveUp(const CheckpointAttempt& attempt,
                             absl::StatusOr<T> result);
  // Of the job's own checkpoints `keep` stay; 0: all.
  absl::Status Remove(int64_t step, const std::string& path, int keep);
  void RemoveTrees(int64_t step, std::vector<std::string> trees);
  CheckpointAttempt AttemptOf(int64_t step) const;

  const CheckpointWriterOptions options_;
  const RankState& state_;
  const RankDisk disk_;
  const Clock& clock_;
  RankListener& listener_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_CHECKPOINT_WRITER_H_
