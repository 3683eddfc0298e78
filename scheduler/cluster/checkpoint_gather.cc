#include "scheduler/cluster/checkpoint_gather.h"

namespace troupe {

std::optional<CheckpointCommit> CheckpointGather::Add(
    const CheckpointShard& shard) {
  if (shard.step() <= gathered_) return std::nullopt;
  auto& shards = open_[shard.step()];
  shards[shard.ref().rank()] = shard;
  if (shards.size() == static_cast<size_t>(ranks_)) {
    CheckpointCommit commit;
    commit.set_step(shard.step());
    for (const auto& [rank, of_rank] : shards) *commit.add_shards() = of_rank;
    gathered_ = shard.step();
    open_.erase(open_.begin(), open_.upper_bound(gathered_));
    return commit;
  }
  if (open_.size() > kOpenMax) open_.erase(open_.begin());
  return std::nullopt;
}

bool CheckpointGather::Committed(int64_t step) {
  if (step <= committed_) return false;
  committed_ = step;
  return true;
}

}  // namespace troupe
