#include "tests/equivalence/shard_board.h"

namespace troupe {
namespace {

absl::Status OtherFailed() {
  return absl::CancelledError("another rank failed");
}

}  // namespace

void ShardBoard::Add(int rank, const WrittenShard& shard) {
  CheckpointShard message;
  message.mutable_ref()->set_rank(rank);
  message.set_step(shard.step);
  *message.mutable_shard() = shard.record;
  absl::MutexLock lock(&mutex_);
  message.set_write(writes_[rank] + 1);
  Answer(shard.step, gather_.Add(message));
}

void ShardBoard::AddUnwritten(int rank, int64_t step,
                              const std::string& error) {
  CheckpointUnwritten message;
  message.mutable_ref()->set_rank(rank);
  message.set_step(step);
  message.set_error(error);
  absl::MutexLock lock(&mutex_);
  message.set_write(writes_[rank] + 1);
  Answer(step, gather_.Add(message));
}

void ShardBoard::Answer(int64_t step, GatheredCheckpoint gathered) {
  if (gathered.commit.has_value()) {
    std::vector<ShardRecord>& shards = shards_[step];
    for (const CheckpointShard& shard : gathered.commit->shards()) {
      shards.push_back(shard.shard());
    }
  }
  if (gathered.unwritten.empty()) return;
  for (int rank = 0; rank < ranks_; ++rank) {
    given_up_[{rank, step}] = gathered.unwritten.front().error();
  }
}

absl::StatusOr<absl::optional<std::vector<ShardRecord>>> ShardBoard::Await(
    int64_t step) {
  absl::MutexLock lock(&mutex_);
  const auto answered = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return failed_ || shards_.count(step) > 0 || given_up_.count({0, step}) > 0;
  };
  mutex_.Await(absl::Condition(&answered));
  const auto shards = shards_.find(step);
  if (shards != shards_.end()) {
    absl::optional<std::vector<ShardRecord>> all = std::move(shards->second);
    shards_.erase(shards);
    return all;
  }
  if (given_up_.count({0, step}) > 0) return absl::nullopt;
  return OtherFailed();
}

void ShardBoard::Commit(int64_t step) {
  absl::MutexLock lock(&mutex_);
  gather_.Committed(step);
}

absl::StatusOr<CheckpointEnd> ShardBoard::AwaitEnd(int rank, int64_t step) {
  absl::MutexLock lock(&mutex_);
  const auto told = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return failed_ || gather_.IsCommitted(step) ||
           given_up_.count({rank, step}) > 0;
  };
  mutex_.Await(absl::Condition(&told));
  ++writes_[rank];
  if (gather_.IsCommitted(step)) return CheckpointEnd{.stored = true};
  const auto given_up = given_up_.find({rank, step});
  if (given_up == given_up_.end()) return OtherFailed();
  CheckpointEnd end = {.given_up = std::move(given_up->second)};
  given_up_.erase(given_up);
  return end;
}

void ShardBoard::Fail() {
  absl::MutexLock lock(&mutex_);
  failed_ = true;
}

}  // namespace troupe
