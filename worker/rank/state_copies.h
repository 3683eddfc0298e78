// The copies of a rank's state that outlive an attempt to run its job
// (proto/plan/copies.h): the memory of the plan's STATE_COPY and PEER_COPY,
// each twice, and of which step each is. While one is written the other is
// whole.
//
//   const int64_t turn = copies.Begin(step);
//   ... KEEP runs as if for step `turn` ...
//   copies.End(turn, state);
//
// Thread rule: the train loop's.
#ifndef TROUPE_WORKER_RANK_STATE_COPIES_H_
#define TROUPE_WORKER_RANK_STATE_COPIES_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/worker.pb.h"
#include "storage/tier/arena.h"

namespace troupe {

class StateCopies {
 public:
  static constexpr int kCount = 2;

  // For the next copy: the step that KEEP is to run for, `step` or the one
  // after, so that it writes the older of the two. That is lost from here on.
  int64_t Begin(int64_t step);
  // It is whole, here and of the other rank whose copy this one holds.
  void End(int64_t turn, const KeptState& state, bool of_peer);
  // The rank's own has been brought to it.
  void Brought(int copy, const KeptState& state);

  // The rank goes on from this step: copies of later ones are not of its
  // future.
  void DropAfter(int64_t step);

  // Which copy is of the step, of the rank itself or of its peer; -1: none.
  int Find(int64_t step, bool of_peer) const;
  // All that is whole.
  std::vector<KeptCopy> Whole() const;

 private:
  std::array<KeptCopy, kCount> copies_;
};

// What an attempt leaves to the next one, if it is of the same rank and plan.
struct KeptMemory {
  std::string fingerprint;  // Plan.fingerprint; empty: there is nothing
  int rank = 0;
  // This rank was to check its host's tokens, and did not come to the end.
  bool data_unchecked = false;
  ArenaBlock block;
  StateCopies copies;
  // Where in it each copy begins, of the rank itself and of its peer; null:
  // there is none.
  std::array<char*, StateCopies::kCount> own{};
  std::array<char*, StateCopies::kCount> of_peer{};

  bool IsOf(const std::string& plan, int of_rank) const {
    return !fingerprint.empty() && fingerprint == plan && rank == of_rank;
  }
};

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_STATE_COPIES_H_
