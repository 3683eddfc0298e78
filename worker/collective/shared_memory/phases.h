// How the ranks of a group keep in step through a segment.
//
// A collective is a row of phases. In a phase each rank works alone; at its end
// all wait for all. One rule says which memory is whose, for any row of any
// operations:
//
//     What is written in phase k lies in the slots of parity k % 2, and is read
//     in phase k + 1. An operation ends with a phase in which it only reads.
//
// A rank that writes in phase k + 2 to the slots that were read in phase k + 1
// does so after all have ended phase k + 1. And the next operation may begin to
// write in the phase in which the last one still reads: the parities differ. So
// an operation costs no more meetings than its data needs, and small ones need
// one.
//
// Send and recv are no phases: they wait for a counter of their channel.
//
// A wait spins for 200 us at most where each rank of the group can have a core,
// and less where that was in vain, as it is when computation has the cores;
// then it sleeps. Every 20 ms it looks whether the others live; a rank
// that goes wakes it at once.
#ifndef TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PHASES_H_
#define TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PHASES_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collective/shared_memory/members.h"
#include "worker/collective/shared_memory/segment_map.h"
#include "worker/collective/verdict.h"

namespace troupe {

// One thread at a time.
class Phases {
 public:
  // Borrows both.
  Phases(const SegmentMap& map, Members& members, int rank);

  const SegmentMap& map() const { return map_; }
  int rank() const { return rank_; }
  int ranks() const { return map_.ranks(); }

  // An operation. All members of a collective give the same `call`, a number
  // that tells operation and size; 0 for send and recv. An error of this or of
  // what follows ends the operation: verdict() says which rank is to blame.
  absl::Status Begin(absl::Time deadline, uint64_t call);
  const Verdict& verdict() const { return verdict_; }

  // Ends the phase: returns once all have ended it.
  absl::Status Next();
  // Returns once the counter, which `peers` advance, is not `seen`. REQUIRES
  // one peer or more.
  absl::Status Await(SharedCounter& counter, uint32_t seen,
                     absl::Span<const int> peers);
  absl::Status Fail(Verdict verdict);

  // Bytes that this rank has put where others read them, as often as they do.
  void CountGiven(int64_t bytes) { given_ += bytes; }
  // Since the last time.
  int64_t TakeGiven() { return std::exchange(given_, 0); }

  // The parity of the slots for what this phase writes, and reads.
  int writes() const { return phase_ % 2; }
  int reads() const { return 1 - writes(); }

 private:
  bool Spin(const SharedCounter& counter, uint32_t seen);
  template <typename MissingRanks>
  absl::Status Sleep(SharedCounter& counter, uint32_t seen,
                     const MissingRanks& missing);
  const std::vector<int>& Missing();
  absl::Status CheckCalls();

  const SegmentMap& map_;
  Members& members_;
  const int rank_;
  MemberState& state_;
  const bool spins_;
  absl::Duration spin_;  // longer after it helped, shorter after it did not
  uint32_t phase_ = 0;
  int64_t given_ = 0;
  absl::Time deadline_;
  uint64_t call_ = 0;  // not yet compared with those of the others
  std::vector<int> missing_;
  Verdict verdict_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_SHARED_MEMORY_PHASES_H_
