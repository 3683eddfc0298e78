#include "scheduler/cluster/checkpoint_gather.h"

namespace troupe {

std::optional<CheckpointCommit> CheckpointGather::Add(
    const CheckpointShard& shard) {
  auto& shards = open_[shard.step()];
  shards[shard.ref().rank()] = shard;
  if (shards.size() == static_cast<size_t>(ranks_)) {
    CheckpointCommit commit;
    commit.set_step(shard.step());
    for (const auto& [rank, of_rank] : shards) *commit.add_shards() = of_rank;
    open_.erase(shard.step());
    return commit;
  }
  if (open_.size() > kOpenMax) open_.erase(open_.begin());
  return std::nullopt;
}

}  // namespace troupe
