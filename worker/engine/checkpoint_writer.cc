#include "worker/engine/checkpoint_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "proto/plan/job_json.h"
#include "storage/checkpoint/checkpoint_dir.h"
#include "storage/disk/directory.h"
#include "worker/rank/tier_port.h"

namespace troupe {
namespace {

// Gives the space back; the job ends in any case.
absl::Status GiveUp(const CheckpointAttempt& attempt, const absl::Status& why) {
  const absl::Status abandoned = AbandonCheckpoint(attempt);
  if (!abandoned.ok()) LogWarning(abandoned.message());
  return why;
}

// What stays of them harms nobody's run.
void RemoveTrees(const std::vector<std::string>& trees, int64_t step,
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

// Bytes of the box from `offset` on, were its rows behind one another.
absl::Status Fetch(TierPort& port, const StateTensor& tensor,
                   const StateBox& box, uint64_t offset,
                   absl::Span<char> bytes) {
  const uint64_t row_bytes = box.columns() * sizeof(float);
  const uint64_t stride_bytes = box.row_stride * sizeof(float);
  const TierAddress first =
      tensor.data + box.begin * static_cast<int64_t>(sizeof(float));
  while (!bytes.empty()) {
    const uint64_t row = box.dense() ? 0 : offset / row_bytes;
    const uint64_t within = box.dense() ? offset : offset % row_bytes;
    const size_t count =
        box.dense() ? bytes.size()
                    : std::min<size_t>(bytes.size(), row_bytes - within);
    RETURN_IF_ERROR(
        port.Read(first + static_cast<int64_t>(row * stride_bytes + within),
                  static_cast<int64_t>(count), bytes.data()));
    offset += count;
    bytes.remove_prefix(count);
  }
  return port.Settle();
}

}  // namespace

CheckpointWriter::CheckpointWriter(const CheckpointWriterOptions& options,
                                   const RankState& state, const RankDisk& disk,
                                   const Clock& clock, RankListener& listener)
    : options_(options),
      state_(state),
      disk_(disk),
      clock_(clock),
      listener_(listener) {}

absl::Status CheckpointWriter::Write(const Snapshot& snapshot) {
  const int64_t begin_ns = clock_.MonotonicNanos();
  // The disk does one thing at a time. The others wait for the commit
  // meanwhile, and not in a collective.
  if (state_.rank() == 0) RETURN_IF_ERROR(options_.removal->AwaitIdle());
  const CheckpointAttempt attempt = {
      .dir = state_.plan->job().checkpoint().directory(),
      .step = snapshot.step,
      .token = options_.token};
  absl::StatusOr<ShardFile> shard = WriteOwnShard(attempt, snapshot.tensors);
  if (!shard.ok()) return GiveUp(attempt, shard.status());
  shard->data_unchecked = options_.data_unchecked;
  const absl::Status told = listener_.OnShardWritten(
      {.step = snapshot.step,
       .file = shard->file.name,
       .bytes = static_cast<int64_t>(shard->file.bytes),
       .description = FormatShardFile(*shard)});
  // Another rank's commit may be under way.
  if (state_.rank() != 0) {
    return told.ok() ? listener_.AwaitCommitted(snapshot.step) : told;
  }
  if (!told.ok()) return GiveUp(attempt, told);
  return Commit(attempt, snapshot, begin_ns);
}

absl::StatusOr<ShardFile> CheckpointWriter::WriteOwnShard(
    const CheckpointAttempt& attempt, const std::vector<StateTensor>& tensors) {
  const absl::StatusOr<std::string> directory = BeginCheckpoint(attempt);
  if (!directory.ok()) return directory.status();
  TierPort port(state_.device, &state_.memory, &state_.disk);
  DiskLog::Work work = {.writes = true, .step = attempt.step};
  std::vector<ShardToWrite> shards;
  for (const StateTensor& tensor : tensors) {
    work.bytes += tensor.elements * static_cast<int64_t>(sizeof(float));
    for (const StateBox& box : tensor.boxes) {
      shards.push_back({.name = tensor.name,
                        .dtype = StoredDType::kF32,
                        .shape = tensor.shape,
                        .box = box.whole});
      if (box.dense() && port.IsHostMemory(tensor.data)) {
        shards.back().data = tensor.data.memory() + box.begin * sizeof(float);
        continue;
      }
      shards.back().fetch = [&port, &tensor, &box](uint64_t offset,
                                                   absl::Span<char> bytes) {
        return Fetch(port, tensor, box, offset, bytes);
      };
    }
  }
  const DiskLog::Entry entry(disk_.log, work);
  return WriteShardFile(disk_.io, attempt, state_.rank(), shards,
                        entry.moved());
}

absl::Status CheckpointWriter::Commit(const CheckpointAttempt& attempt,
                                      const Snapshot& snapshot,
                                      int64_t begin_ns) {
  const absl::StatusOr<std::vector<std::string>> descriptions =
      listener_.AwaitShards(attempt.step);
  if (!descriptions.ok()) return GiveUp(attempt, descriptions.status());
  std::vector<ShardFile> files;
  int64_t bytes = 0;
  for (const std::string& description : *descriptions) {
    absl::StatusOr<ShardFile> file = ParseShardFile(description);
    if (!file.ok()) return GiveUp(attempt, file.status());
    bytes += file->file.bytes;
    files.push_back(*std::move(file));
  }
  const Plan& plan = *state_.plan;
  Manifest manifest;
  manifest.job_name = plan.job().name();
  manifest.step = attempt.step;
  manifest.samples_consumed = snapshot.samples_consumed;
  manifest.loss_scale = snapshot.loss_scale;
  manifest.seed = plan.job().training().seed();
  manifest.plan_fingerprint = plan.fingerprint();
  manifest.job = JobJson(plan.job());
  manifest.tokenizer = state_.tokenizer();
  manifest.data = state_.DataIdentity();
  manifest.created = clock_.Now();
  absl::StatusOr<std::string> path =
      CommitCheckpoint(attempt, std::move(manifest), files, options_.carried);
  if (!path.ok()) return GiveUp(attempt, path.status());
  CheckpointRecord record;
  record.set_step(attempt.step);
  record.set_path(*path);
  record.set_bytes(bytes);
  record.set_seconds((clock_.MonotonicNanos() - begin_ns) * 1e-9);
  RETURN_IF_ERROR(listener_.OnCommitted(record));
  // Whoever has not heard of it goes on from one that may be removed now.
  RETURN_IF_ERROR(listener_.AwaitCommitted(attempt.step));
  return RemoveOld(attempt, *path);
}

absl::Status CheckpointWriter::RemoveOld(const CheckpointAttempt& attempt,
                                         const std::string& path) {
  std::vector<std::string> trees;
  absl::Status status;
  if (options_.folder != nullptr) {
    status = options_.folder->Committed(path, trees);
  }
  // The new checkpoint is whole: that more old ones stay than need to harms
  // nobody's run.
  const int keep = state_.plan->job().checkpoint().keep();
  if (keep > 0) {
    const absl::Status pruned = PruneCheckpoints(
        {.dir = attempt.dir, .written = attempt.step, .keep = keep}, trees);
    if (!pruned.ok()) LogWarning(pruned.message());
  }
  trees.push_back(TemporaryDirectory(attempt));  // what it replaced
  std::sort(trees.begin(), trees.end());
  trees.erase(std::unique(trees.begin(), trees.end()), trees.end());
  options_.removal->Start(
      [&log = disk_.log, step = attempt.step, trees = std::move(trees)] {
        RemoveTrees(trees, step, log);
        return absl::OkStatus();
      });
  return status;
}

}  // namespace troupe
