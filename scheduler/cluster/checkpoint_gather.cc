#include "scheduler/cluster/checkpoint_gather.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe {

template <typename Answer>
CheckpointGather::Open& CheckpointGather::OpenFor(const Answer& answer) {
  const int rank = answer.ref().rank();
  newest_ = std::max(newest_, answer.write());
  if (rank == 0) of_rank_0_ = std::max(of_rank_0_, answer.write());
  for (auto& [write, open] : open_) open.Forget(rank);
  Open& open = open_[answer.write()];
  open.step = answer.step();
  return open;
}

GatheredCheckpoint CheckpointGather::Add(const CheckpointShard& shard) {
  const int rank = shard.ref().rank();
  if (shard.write() <= given_up_) {
    return {.unheard = {{rank, shard.step(), shard.write()}}};
  }
  if (shard.write() <= gathered_ || IsCommitted(shard.step())) return {};
  OpenFor(shard).shards[rank] = shard;
  return Gathered(shard.write());
}

GatheredCheckpoint CheckpointGather::Add(const CheckpointUnwritten& unwritten) {
  const int64_t write = unwritten.write();
  const int rank = unwritten.ref().rank();
  if (write <= given_up_) {
    return {.unheard = {{rank, unwritten.step(), write}}};
  }
  if (IsCommitted(unwritten.step())) return {};
  // All shards were there, and rank 0 could not commit them.
  if (write == gathered_ && rank == 0) return GiveUp(write, {unwritten});
  if (write <= gathered_) return {};
  OpenFor(unwritten).unwritten.push_back(unwritten);
  return Gathered(write);
}

void CheckpointGather::Open::Forget(int rank) {
  shards.erase(rank);
  unwritten.erase(std::remove_if(unwritten.begin(), unwritten.end(),
                                 [rank](const CheckpointUnwritten& other) {
                                   return other.ref().rank() == rank;
                                 }),
                  unwritten.end());
}

GatheredCheckpoint CheckpointGather::Gathered(int64_t write) {
  Open& open = open_[write];
  if (open.shards.size() + open.unwritten.size() <
      static_cast<size_t>(ranks_)) {
    GatheredCheckpoint gathered;
    TakeUnheard(gathered);
    return gathered;
  }
  if (!open.unwritten.empty()) return GiveUp(write, std::move(open.unwritten));
  GatheredCheckpoint gathered;
  CheckpointCommit& commit = gathered.commit.emplace();
  commit.set_step(open.step);
  commit.set_write(write);
  for (auto& [rank, shard] : open.shards) {
    *commit.add_shards() = std::move(shard);
  }
  gathered_ = write;
  open_.erase(write);
  TakeUnheard(gathered);
  return gathered;
}

GatheredCheckpoint CheckpointGather::GiveUp(
    int64_t write, std::vector<CheckpointUnwritten> unwritten) {
  given_up_ = write;
  open_.erase(write);
  GatheredCheckpoint gathered = {.unwritten = std::move(unwritten)};
  TakeUnheard(gathered);
  return gathered;
}

void CheckpointGather::TakeUnheard(GatheredCheckpoint& gathered) {
  while (!open_.empty()) {
    const auto& [write, open] = *open_.begin();
    const bool empty = open.shards.empty() && open.unwritten.empty();
    if (!empty && (write >= newest_ || write > of_rank_0_)) return;
    for (const auto& [rank, shard] : open.shards) {
      gathered.unheard.push_back({rank, open.step, write});
    }
    for (const CheckpointUnwritten& unwritten : open.unwritten) {
      gathered.unheard.push_back({unwritten.ref().rank(), open.step, write});
    }
    if (!empty) given_up_ = std::max(given_up_, write);
    open_.erase(open_.begin());
  }
}

bool CheckpointGather::Committed(int64_t step) {
  if (step <= committed_) return false;
  committed_ = step;
  for (auto it = open_.begin(); it != open_.end();) {
    it = it->second.step <= step ? open_.erase(it) : std::next(it);
  }
  return true;
}

}  // namespace troupe
