// What writing a checkpoint comes to, for the rank that does it: one that
// trains (checkpoint_writer.h), or one that has ended and keeps copies of
// states (save_copies.h).
#ifndef TROUPE_WORKER_ENGINE_RANK_SHARD_H_
#define TROUPE_WORKER_ENGINE_RANK_SHARD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "storage/checkpoint/checkpoint_folder.h"
#include "storage/checkpoint/commit.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/tier_port.h"
#include "worker/rank/unit_state.h"

namespace troupe {

// Writes what a rank saves, wherever `port` finds it. Where it fails, what was
// written is left. What the disk says is marked (storage/disk/storage_error.h).
absl::StatusOr<ShardRecord> WriteRankShard(
    const CheckpointAttempt& attempt, const ShardWriter& writer,
    const std::vector<StateTensor>& tensors, TierPort& port,
    const RankDisk& disk);

// Where training stood, and on what.
struct SavedState {
  std::string run_id;            // JobStatus.run_id
  int64_t samples_consumed = 0;  // the data position
  ManifestLossScale loss_scale = {};
  std::string tokenizer;  // RankState::tokenizer, DataIdentity
  std::string data;
  absl::Time created;
};

// Commits, once all ranks have written. The record has no seconds yet. Errors as
// CommitCheckpoint; and where `folder`, which may be null, is another's by now.
absl::StatusOr<CheckpointRecord> CommitShards(
    const CheckpointAttempt& attempt, const Plan& plan, const SavedState& saved,
    const std::vector<ShardRecord>& shards,
    const std::vector<CarriedFile>& carried, const CheckpointFolder* folder);

// Of the committed checkpoint `path`: what is obsolete by it, which the caller
// removes (RemoveObsolete, which takes its time). Of the job's own `keep` stay;
// 0: all. `folder` may be null. What an earlier run left and keeps its name,
// `stays` says; all else is there all the same. Nothing is, and the error says
// so, where the folder is another's by now.
absl::Status TakeObsolete(const CheckpointAttempt& attempt, int keep,
                          const std::string& path, CheckpointFolder* folder,
                          std::vector<std::string>& trees, absl::Status& stays);
// What stays harms nobody's run.
void RemoveObsolete(const std::vector<std::string>& trees, int64_t step,
                    DiskLog& log);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_RANK_SHARD_H_
