#include "worker/engine/checkpoint_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"
#include "storage/disk/storage_error.h"
#include "worker/engine/rank_shard.h"
#include "worker/rank/tier_port.h"

namespace troupe {
namespace {

void Abandon(const CheckpointAttempt& attempt) {
  const absl::Status abandoned = AbandonCheckpoint(attempt);
  if (!abandoned.ok()) LogWarning(abandoned.message());
}

// Rank 0 may have removed the directory before this rank began to write.
void AbandonOwn(const CheckpointAttempt& attempt, int rank) {
  const absl::Status abandoned = AbandonShard(attempt, rank);
  if (!abandoned.ok()) LogWarning(abandoned.message());
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

absl::StatusOr<CheckpointEnd> CheckpointWriter::Write(
    const Snapshot& snapshot) {
  const int64_t begin_ns = clock_.MonotonicNanos();
  // The disk does one thing at a time. The others wait for the commit
  // meanwhile, and not in a collective.
  if (state_.rank() == 0) RETURN_IF_ERROR(options_.removal->AwaitIdle());
  const CheckpointAttempt attempt = AttemptOf(snapshot.step);
  if (options_.folder != nullptr) {
    const absl::Status held = options_.folder->Hold();
    if (!held.ok()) return Unwritten(attempt, held);
  }
  const absl::StatusOr<ShardRecord> shard =
      WriteOwnShard(attempt, snapshot.tensors);
  if (!shard.ok()) return Unwritten(attempt, shard.status());
  const absl::Status told =
      listener_.OnShardWritten({.step = snapshot.step, .record = *shard});
  if (!told.ok()) return OrGiveUp<CheckpointEnd>(attempt, told);
  // Another rank's commit may be under way.
  if (state_.rank() != 0) return listener_.AwaitEnd(snapshot.step);
  return Commit(attempt, snapshot, begin_ns);
}

absl::StatusOr<CheckpointEnd> CheckpointWriter::Unwritten(
    const CheckpointAttempt& attempt, const absl::Status& why) {
  // None of these gets better by itself: another has the directory, a device or
  // a value is broken, or it is our own mistake.
  const bool superseded =
      options_.folder != nullptr && options_.folder->superseded();
  if (superseded || !MayBeWrittenLater(why)) {
    return OrGiveUp<CheckpointEnd>(attempt, why);
  }
  const absl::Status told =
      listener_.OnUnwritten(attempt.step, std::string(why.message()));
  if (!told.ok()) return OrGiveUp<CheckpointEnd>(attempt, told);
  return OrGiveUp(attempt, listener_.AwaitEnd(attempt.step));
}

template <typename T>
absl::StatusOr<T> CheckpointWriter::OrGiveUp(const CheckpointAttempt& attempt,
                                             absl::StatusOr<T> result) {
  if (result.ok()) return result;
  if (state_.rank() == 0) {
    Abandon(attempt);
  } else {
    AbandonOwn(attempt, state_.rank());
  }
  return result;
}

void CheckpointWriter::Discard(int64_t step) {
  if (state_.rank() != 0) return;
  options_.removal->Start([attempt = AttemptOf(step)] {
    Abandon(attempt);
    return absl::OkStatus();
  });
}

absl::StatusOr<ShardRecord> CheckpointWriter::WriteOwnShard(
    const CheckpointAttempt& attempt, const std::vector<StateTensor>& tensors) {
  TierPort port(state_.device, &state_.memory, &state_.disk);
  return WriteRankShard(
      attempt,
      {.rank = state_.rank(), .data_unchecked = options_.data_unchecked},
      tensors, port, disk_);
}

absl::StatusOr<CheckpointEnd> CheckpointWriter::Commit(
    const CheckpointAttempt& attempt, const Snapshot& snapshot,
    int64_t begin_ns) {
  ASSIGN_OR_RETURN(const auto shards,
                   OrGiveUp(attempt, listener_.AwaitShards(attempt.step)));
  if (!shards.has_value()) {
    return OrGiveUp(attempt, listener_.AwaitEnd(attempt.step));
  }
  absl::StatusOr<CheckpointRecord> record =
      CommitShards(attempt, *state_.plan,
                   {.run_id = options_.run_id,
                    .samples_consumed = snapshot.samples_consumed,
                    .loss_scale = snapshot.loss_scale,
                    .tokenizer = state_.tokenizer(),
                    .data = state_.DataIdentity(),
                    .created = clock_.Now()},
                   *shards, options_.carried, options_.folder);
  if (!record.ok()) return Unwritten(attempt, record.status());
  record->set_seconds((clock_.MonotonicNanos() - begin_ns) * 1e-9);
  RETURN_IF_ERROR(listener_.OnCommitted(*record));
  // A rank that has not heard of it goes on from one that may be removed now.
  ASSIGN_OR_RETURN(const CheckpointEnd end, listener_.AwaitEnd(attempt.step));
  if (end.stored) {
    RETURN_IF_ERROR(RemoveOld(attempt.step, record->path()));
    return end;
  }
  LogWarning(absl::StrCat(record->path(),
                          ": the scheduler cannot store that it is there: "
                          "older checkpoints stay"));
  RETURN_IF_ERROR(Remove(attempt.step, record->path(), /*keep=*/0));
  return end;
}

CheckpointAttempt CheckpointWriter::AttemptOf(int64_t step) const {
  return {.dir = state_.plan->job().checkpoint().directory(),
          .step = step,
          .token = options_.token};
}

absl::Status CheckpointWriter::RemoveOld(int64_t step,
                                         const std::string& path) {
  return Remove(step, path, state_.plan->job().checkpoint().keep());
}

absl::Status CheckpointWriter::Remove(int64_t step, const std::string& path,
                                      int keep) {
  std::vector<std::string> trees;
  absl::Status stays;
  RETURN_IF_ERROR(
      TakeObsolete(AttemptOf(step), keep, path, options_.folder, trees, stays));
  RemoveTrees(step, std::move(trees));
  if (options_.folder == nullptr) return absl::OkStatus();
  // It may stay for each checkpoint, and a job's notices are few.
  if (options_.folder->IsNews(stays)) {
    listener_.OnNotice(absl::StrCat(path, " is written; ", stays.message(),
                                    ", or wait: it is tried again"));
  } else if (!stays.ok()) {
    LogWarning(absl::StrCat(path, " is written; ", stays.message()));
  }
  return absl::OkStatus();
}

absl::Status CheckpointWriter::RetryOverwritten(int64_t step) {
  RETURN_IF_ERROR(options_.removal->AwaitIdle());
  RETURN_IF_ERROR(options_.folder->CheckHeld());
  std::vector<std::string> trees;
  const absl::Status stays = options_.folder->RetryOverwritten(trees);
  RemoveTrees(step, std::move(trees));
  return stays;
}

void CheckpointWriter::RemoveTrees(int64_t step,
                                   std::vector<std::string> trees) {
  options_.removal->Start([&log = disk_.log, step, trees = std::move(trees)] {
    RemoveObsolete(trees, step, log);
    return absl::OkStatus();
  });
}

}  // namespace troupe
