#include "worker/engine/rank_shard.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "proto/base/check.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/disk/directory.h"
#include "worker/rank/stored_f32.h"

namespace troupe {
namespace {

// Bytes of the box from `offset` on, were its rows behind one another.
absl::Status Fetch(TierPort& port, const StateTensor& tensor,
                   const StateBox& box, uint64_t offset,
                   absl::Span<char> bytes) {
  const uint64_t row_bytes = box.columns() * sizeof(float);
  CHECK(offset % sizeof(float) == 0 && bytes.size() % sizeof(float) == 0)
      << "parts of elements are asked for";
  while (!bytes.empty()) {
    const uint64_t row = box.dense() ? 0 : offset / row_bytes;
    const uint64_t within = box.dense() ? offset : offset % row_bytes;
    const size_t count =
        box.dense() ? bytes.size()
                    : std::min<size_t>(bytes.size(), row_bytes - within);
    const int64_t element = static_cast<int64_t>(
        box.begin + box.RowOffset(static_cast<int64_t>(row)) +
        static_cast<int64_t>(within / sizeof(float)));
    RETURN_IF_ERROR(ReadF32(
        port,
        tensor.At({.local = element,
                   .count = static_cast<int64_t>(count / sizeof(float))}),
        reinterpret_cast<float*>(bytes.data())));
    offset += count;
    bytes.remove_prefix(count);
  }
  return port.Settle();
}

}  // namespace

absl::StatusOr<ShardRecord> WriteRankShard(
    const CheckpointAttempt& attempt, const ShardWriter& writer,
    const std::vector<StateTensor>& tensors, TierPort& port,
    const RankDisk& disk) {
  RETURN_IF_ERROR(BeginCheckpoint(attempt).status());
  DiskLog::Work work = {.writes = true, .step = attempt.step};
  std::vector<ShardToWrite> shards;
  for (const StateTensor& tensor : tensors) {
    work.bytes += tensor.elements * static_cast<int64_t>(sizeof(float));
    for (const StateBox& box : tensor.boxes) {
      shards.push_back({.name = tensor.name,
                        .dtype = StoredDType::kF32,
                        .shape = tensor.shape,
                        .box = box.whole});
      if (box.dense() && tensor.type == DType::kF32 &&
          port.IsHostMemory(tensor.data)) {
        shards.back().data = tensor.data.memory() + box.begin * sizeof(float);
        continue;
      }
      shards.back().fetch = [&port, &tensor, &box](uint64_t offset,
                                                   absl::Span<char> bytes) {
        return Fetch(port, tensor, box, offset, bytes);
      };
    }
  }
  const DiskLog::Entry entry(disk.log, work);
  ASSIGN_OR_RETURN(
      const ShardReceipt receipt,
      WriteShardFile(disk.io, attempt, writer, shards, entry.moved()));
  ShardRecord record;
  record.set_file(receipt.file);
  record.set_bytes(static_cast<int64_t>(receipt.bytes));
  record.set_description_file(receipt.description);
  record.set_description_bytes(static_cast<int64_t>(receipt.description_bytes));
  record.set_description_crc32c(receipt.description_crc32c);
  return record;
}

absl::StatusOr<CheckpointRecord> CommitShards(
    const CheckpointAttempt& attempt, const Plan& plan, const SavedState& saved,
    const std::vector<ShardRecord>& shards,
    const std::vector<CarriedFile>& carried, const CheckpointFolder* folder) {
  std::vector<ShardReceipt> receipts;
  int64_t bytes = 0;
  for (const ShardRecord& shard : shards) {
    bytes += shard.bytes();
    receipts.push_back(
        {.file = shard.file(),
         .bytes = static_cast<uint64_t>(shard.bytes()),
         .description = shard.description_file(),
         .description_bytes = static_cast<uint64_t>(shard.description_bytes()),
         .description_crc32c = shard.description_crc32c()});
  }
  Manifest manifest;
  manifest.job_name = plan.job().name();
  manifest.run_id = saved.run_id;
  manifest.step = attempt.step;
  manifest.samples_consumed = saved.samples_consumed;
  manifest.loss_scale = saved.loss_scale;
  manifest.seed = plan.job().training().seed();
  manifest.plan_fingerprint = plan.fingerprint();
  manifest.job = JobJson(plan.job());
  manifest.tokenizer = saved.tokenizer;
  manifest.data = saved.data;
  manifest.created = saved.created;
  ASSIGN_OR_RETURN(
      const std::string path,
      CommitCheckpoint(
          attempt, std::move(manifest), receipts, carried, [folder] {
            return folder == nullptr ? absl::OkStatus() : folder->CheckHeld();
          }));
  CheckpointRecord record;
  record.set_step(attempt.step);
  record.set_path(path);
  record.set_bytes(bytes);
  return record;
}

absl::Status TakeObsolete(const CheckpointAttempt& attempt, int keep,
                          const std::string& path, CheckpointFolder* folder,
                          std::vector<std::string>& trees,
                          absl::Status& stays) {
  if (folder != nullptr) {
    RETURN_IF_ERROR(folder->CheckHeld());
    stays = folder->Committed(path, trees);
  }
  // The new checkpoint is whole: that more old ones stay than need to harms
  // nobody's run.
  if (keep > 0) {
    const absl::Status pruned = PruneCheckpoints(
        {.dir = attempt.dir, .written = attempt.step, .keep = keep}, trees);
    if (!pruned.ok()) LogWarning(pruned.message());
  }
  trees.push_back(TemporaryDirectory(attempt));  // what it replaced
  std::sort(trees.begin(), trees.end());
  trees.erase(std::unique(trees.begin(), trees.end()), trees.end());
  return absl::OkStatus();
}

void RemoveObsolete(const std::vector<std::string>& trees, int64_t step,
                    DiskLog& log) {
  DiskLog::Work work = {.writes = true, .step = step};
  for (const std::string& tree : trees) {
    work.bytes += static_cast<int64_t>(TreeBytes(tree));
  }
  const DiskLog::Entry entry(log, work);
  for (const std::string& tree : trees) {
    const absl::Status removed = RemoveTree(tree, entry.moved());
    if (!removed.ok()) LogWarning(removed.message());
  }
}

}  // namespace troupe
