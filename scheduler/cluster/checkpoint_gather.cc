#include "scheduler/cluster/checkpoint_gather.h"

#include <algorithm>
#include <utility>

namespace troupe {

GatheredCheckpoint CheckpointGather::Add(const CheckpointShard& shard) {
  const int64_t step = shard.step();
  const int rank = shard.ref().rank();
  if (step <= gathered_) return {};
  if (IsOfBefore(step, rank)) return {.given_up_before = true};
  open_[step].Forget(rank);
  open_[step].shards[rank] = shard;
  return Gathered(step);
}

GatheredCheckpoint CheckpointGather::Add(const CheckpointUnwritten& unwritten) {
  const int64_t step = unwritten.step();
  const int rank = unwritten.ref().rank();
  if (IsCommitted(step)) return {};
  if (IsOfBefore(step, rank)) return {.given_up_before = true};
  // All shards were there, and rank 0 could not commit them.
  if (step == gathered_ && rank == 0) return GiveUp(step, {unwritten});
  if (step <= gathered_) return {};
  open_[step].Forget(rank);
  open_[step].unwritten.push_back(unwritten);
  return Gathered(step);
}

void CheckpointGather::Open::Forget(int rank) {
  shards.erase(rank);
  unwritten.erase(std::remove_if(unwritten.begin(), unwritten.end(),
                                 [rank](const CheckpointUnwritten& other) {
                                   return other.ref().rank() == rank;
                                 }),
                  unwritten.end());
}

GatheredCheckpoint CheckpointGather::Gathered(int64_t step) {
  Open& open = open_[step];
  if (open.shards.size() + open.unwritten.size() <
      static_cast<size_t>(ranks_)) {
    if (open_.size() > kOpenMax) open_.erase(open_.begin());
    return {};
  }
  if (!open.unwritten.empty()) return GiveUp(step, std::move(open.unwritten));
  CheckpointCommit commit;
  commit.set_step(step);
  for (auto& [rank, shard] : open.shards) {
    *commit.add_shards() = std::move(shard);
  }
  gathered_ = step;
  open_.erase(open_.begin(), open_.upper_bound(step));
  return {.commit = std::move(commit)};
}

GatheredCheckpoint CheckpointGather::GiveUp(
    int64_t step, std::vector<CheckpointUnwritten> unwritten) {
  gathered_ = step - 1;  // it may be tried again
  open_.erase(open_.begin(), open_.upper_bound(step));
  return {.unwritten = std::move(unwritten)};
}

void CheckpointGather::GaveUpBefore(int64_t step) {
  given_up_before_ = step;
  for (int rank = 0; rank < ranks_; ++rank) unheard_.insert(rank);
}

bool CheckpointGather::IsOfBefore(int64_t step, int rank) {
  return step == given_up_before_ && unheard_.erase(rank) > 0;
}

bool CheckpointGather::Committed(int64_t step) {
  if (step <= committed_) return false;
  committed_ = step;
  return true;
}

}  // namespace troupe
