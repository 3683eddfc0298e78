// The memory that the ranks of an in-process group share: which have come,
// which buffer each has put up, and how the group failed, if it did.
//
// A collective is a row of phases. In the first all ranks put up their buffers
// and wait for each other: here a rank can be missed, time can run out, a peer
// can abort. Once all have come every rank is inside the call and computing, so
// the later phases end by themselves and wait without a deadline; that is what
// makes it safe to read the buffers of others.
#ifndef TROUPE_WORKER_COLLECTIVE_IN_PROCESS_BOARD_H_
#define TROUPE_WORKER_COLLECTIVE_IN_PROCESS_BOARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collective/blocks.h"
#include "worker/collective/comm_buffer.h"
#include "worker/collective/verdict.h"

namespace troupe {

// Thread-safe; one call a rank at a time, but for Fail and Leave.
class Board {
 public:
  explicit Board(int ranks);

  // Puts up the rank's buffers and waits until all ranks have done so.
  // `call` is what it called: all must call the same.
  struct Entry {
    std::string call;
    CommBuffer buffer;
    // Blocks for the others and from them, where each has its own; borrowed.
    absl::Span<const ElementRange> gives = {};
    absl::Span<const ElementRange> takes = {};
  };
  Verdict Enter(int rank, Entry entry, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // REQUIRES that this rank's last Enter succeeded. Waits for all to call it.
  void NextPhase(int rank) ABSL_LOCKS_EXCLUDED(mutex_);
  // What `rank` put up; valid from Enter until the rank's last NextPhase.
  CommBuffer BufferOf(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);
  Entry EntryOf(int rank) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Another rank has read `bytes` bytes that `giver` put up.
  void CountGiven(int giver, size_t bytes) {
    given_[giver].fetch_add(bytes, std::memory_order_relaxed);
  }
  // What others have read, and what the rank has sent.
  uint64_t given_bytes(int rank) const {
    return given_[rank].load(std::memory_order_relaxed);
  }

  // Copies from the sender's buffer into the receiver's when both have come.
  struct Route {
    int sender;
    int receiver;
  };
  Verdict Send(const Route& route, CommBuffer data, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  Verdict Recv(const Route& route, CommBuffer data, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Both at once, for one rank: neither waits for the other.
  struct Crossing {
    Route out;
    CommBuffer send;
    Route in;
    CommBuffer receive;
  };
  Verdict Cross(const Crossing& crossing, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // The group failed: all that wait return `outcome`. The first stays.
  void Fail(Verdict outcome) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasFailed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return !failure_.ok();
  }
  // The rank destroyed its communicator: those that wait for it fail.
  void Leave(int rank) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Mail { kEmpty, kWanted, kFilling, kFilled };
  struct Box {  // between one sender and one receiver
    Mail mail = Mail::kEmpty;
    CommBuffer into;
  };
  Box& BoxOf(const Route& route) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return boxes_[route.sender * ranks_ + route.receiver];
  }
  // The two halves of Recv: says where to, and waits until it is there.
  Verdict Want(const Route& route, CommBuffer data) ABSL_LOCKS_EXCLUDED(mutex_);
  Verdict Take(const Route& route, absl::Time deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  int MissingRank(int64_t phase) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Verdict FailLocked(Verdict outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int ranks_;
  std::vector<std::atomic<uint64_t>> given_;  // by rank
  mutable absl::Mutex mutex_;
  std::vector<int64_t> phase_ ABSL_GUARDED_BY(mutex_);  // reached, by rank
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int64_t call_phase_ ABSL_GUARDED_BY(mutex_) = 0;  // where call_ was entered
  std::string call_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> left_ ABSL_GUARDED_BY(mutex_);
  std::vector<Box> boxes_ ABSL_GUARDED_BY(mutex_);
  Verdict failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_IN_PROCESS_BOARD_H_
