// A Communicator lets the ranks of one group exchange data: the collectives and
// send/recv, over whichever backend fits (create_communicator.h).
//
//   RETURN_IF_ERROR(communicator.AllReduce(
//       CommBuffer::Of(absl::MakeSpan(gradients)), ReduceOp::kSum,
//       {.name = "gradients of block.3", .timeout = absl::Seconds(60)}));
//
// Buffers lie on the device of the seat (communicator_seat.h); what the calling
// thread has enqueued there is done before they are read.
//
// Every member calls the same operations in the same order, with the same
// sizes; check_program proves that of a plan. Calls block the lane that makes
// them, which has its own communicator: asynchrony is the lane's.
//
// Enqueued calls. On an asynchronous device a call may return when what it does
// is in the calling thread's queue, as ops do (enqueued/enqueued_communicator.h
// does so, others return when the data is there). A fence recorded afterwards
// says when it has run; whether it came to a good end, Outcome:
//
//   RETURN_IF_ERROR(communicator.AllReduce(...));
//   ... what needs the sum is enqueued behind it ...
//   RETURN_IF_ERROR(communicator.Outcome(device.Synchronize()));
//
// Ranks here are indices into the group's list, 0 .. size() - 1; messages to
// people name the global rank. Groups of one and empty buffers are fine.
//
// Bytes sent. A communicator counts what it hands to other members, where it
// copies or sends it: each byte as often as members receive it, payload only.
// Of a buffer of S bytes each of N ranks sends
//
//   all-reduce                   2 (N - 1) / N S
//   reduce-scatter, all-gather     (N - 1) / N S
//   all-to-all                     its blocks for others
//   send, shift                    S
//   reduce                         S, and the root (N - 1) / N S or nothing
//   broadcast                      all together (N - 1) S
//
// (N - 1) / N S stands for the blocks of the others in a reduce-scatter, and
// for the own one N - 1 times in an all-gather; where blocks are not even,
// Gloo's ring sends others than that, and only the sum over all ranks is the
// same. All-reduces of which a step more would cost more than the bytes hand
// the whole buffer to each rank, (N - 1) S: over shared memory up to 32 KiB,
// over Gloo where that is no more than 64 KiB. What really moves: Gloo adds the
// headers of its messages; over shared memory a byte for several ranks is
// written once, and read by each; in process each rank reads it where it lies;
// for NCCL it is what its ring would send, though NCCL may have chosen another
// way.
//
// Errors. A failed call names group, operation, buffer, the global rank that
// did not come and how long it waited, no later than its timeout:
//   Unavailable       a peer died, closed its communicator or aborted
//   DeadlineExceeded  a peer did not come
//   Cancelled         Abort() was called here
// What the buffer holds is then unspecified. A communicator that failed is
// broken: the others fail as soon as they notice, and every later call returns
// the first error at once. Build a new one.
#ifndef TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collective/blocks.h"
#include "worker/collective/call_error.h"
#include "worker/collective/comm_buffer.h"
#include "worker/collective/verdict.h"

namespace troupe {

enum class ReduceOp { kSum, kMax };

// A group of the plan: global ranks, ascending in most plans but not by need.
struct CommGroup {
  std::string name;
  std::vector<int> ranks;
};

struct CommOptions {
  std::string name;  // what is moved, for errors: "gradients of block.3"
  absl::Duration timeout = absl::Minutes(5);
  // Where calls are enqueued: whether the members meet on the host before this
  // one is. All of them say the same.
  bool meet = true;
};

// Where a buffer is dealt out or brought together, block i is rank i's:
// EvenPiece (proto/plan/layout.h) of its elements, or of its rows, where a row
// must not be cut. That is what ZeRO gives rank i of a flat buffer, and
// sequence parallelism of one of [tokens, hidden]. With ranges, block i is
// ranges[i] instead: they tile the buffer in the order of the ranks, of any
// sizes, the same on all of them. The whole buffer lies at one of the two ends,
// a block at the other. In place is the call whose block is
// block rank() of the whole, as Communicator::Block gives it; otherwise they
// may not overlap.
struct ReduceScatterBuffers {
  CommBuffer send;     // whole; scratch
  CommBuffer receive;  // block rank() of the sum
  int64_t row_elements = 1;
  absl::Span<const ElementRange> ranges = {};
};
struct AllGatherBuffers {
  CommBuffer send;     // block rank()
  CommBuffer receive;  // whole
  int64_t row_elements = 1;
  absl::Span<const ElementRange> ranges = {};
};

// Not in place. Of one size; they may not overlap.
struct ReduceBuffers {
  CommBuffer send;     // scratch
  CommBuffer receive;  // of the root: the sum; others' stay as they are
};
struct BroadcastBuffers {
  CommBuffer send;  // of the root
  CommBuffer receive;
};

// `send` holds a block for each rank, `receive` one of each. They may not
// overlap. Without ranges all blocks are of one size and in the order of the
// ranks. With them, block i is send_ranges[i] and receive_ranges[i] of the
// buffers, which may be empty and lie in any order, with gaps between; blocks
// that are received do not overlap, and gaps stay as they are. All members
// call, also those that have nothing to move. What i sends to j is as long as
// what j receives from i: where they disagree both fail, over TCP at the
// deadline.
struct AllToAllBuffers {
  CommBuffer send;
  CommBuffer receive;
  absl::Span<const ElementRange> send_ranges = {};
  absl::Span<const ElementRange> receive_ranges = {};
};

// One rank to send to and one to receive from, of which either may be nobody,
// and both the same. A rank shifts to itself only what it receives from itself.
inline constexpr int kNobody = -1;
struct ShiftBuffers {
  CommBuffer send;
  int to = kNobody;
  CommBuffer receive;
  int from = kNobody;
};

// One call of one thread at a time; Abort from any thread.
class Communicator {
 public:
  // Says nothing to the peers but that it goes: those that wait for it fail.
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const CommGroup& group() const { return group_; }
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(group_.ranks.size()); }

  // Since it joined; see above. Any thread; what the calls that have returned
  // sent is in it.
  virtual uint64_t sent_bytes() const = 0;

  // Block `member` of a buffer, as the structs above say.
  CommBuffer Block(const CommBuffer& whole, int member,
                   int64_t row_elements = 1) const;

  // Reductions: every rank ends with the same bits, and a run with the same
  // bits as the run before. Sums of bf16 are taken in f32 and rounded once, but
  // by NCCL, which rounds what each member adds, and over levels (levels.h),
  // each of which rounds.
  absl::Status AllReduce(CommBuffer data, ReduceOp op,
                         const CommOptions& options);
  absl::Status ReduceScatter(const ReduceScatterBuffers& buffers, ReduceOp op,
                             const CommOptions& options);
  // The root ends with the bits of an AllReduce; elsewhere `data` is scratch.
  absl::Status Reduce(CommBuffer data, int root, ReduceOp op,
                      const CommOptions& options);
  absl::Status Reduce(const ReduceBuffers& buffers, int root, ReduceOp op,
                      const CommOptions& options);
  absl::Status AllGather(const AllGatherBuffers& buffers,
                         const CommOptions& options);
  absl::Status Broadcast(CommBuffer data, int root, const CommOptions& options);
  absl::Status Broadcast(const BroadcastBuffers& buffers, int root,
                         const CommOptions& options);
  absl::Status AllToAll(const AllToAllBuffers& buffers,
                        const CommOptions& options);
  // May return before the peer has received; may also wait for its Recv.
  // REQUIRES peer != rank().
  absl::Status Send(CommBuffer data, int peer, const CommOptions& options);
  absl::Status Recv(CommBuffer data, int peer, const CommOptions& options);
  // A Send and a Recv at once, neither of which waits for the other; the peers
  // may do theirs by Shift or one by one.
  absl::Status Shift(const ShiftBuffers& buffers, const CommOptions& options);
  // Returns once all have entered.
  absl::Status Barrier(const CommOptions& options);

  // Of all calls that are done now, `queue` being what the wait for their fence
  // returned: OK, or the first error. It may take a while to find out which
  // member to blame. Any thread.
  absl::Status Outcome(const absl::Status& queue);

  // Whether it is known, without a wait, that the group has failed: a member
  // died, aborted or gave up. While a call is in progress that call finds out.
  // On the thread of the rank's watch.
  virtual bool SeesFailure() { return false; }

  // Makes the call in progress, here and at the peers, and all later ones fail.
  // Any thread, any number of times; the first reason stays.
  void Abort(const absl::Status& why);

  // Makes the call in progress fail as Abort does, without a wait: for the
  // watch's thread. Where a backend's Abort may wait for peers and no call is
  // in progress, it does nothing; a watch that looks again finds the next call.
  virtual void AbortCall(const absl::Status& why) { Abort(why); }

 protected:
  // What a backend's operation gets besides its buffers. Times are
  // SteadyNow()'s; `deadline` is InfiniteFuture where there is none.
  struct Call {
    const char* operation;  // "all-reduce"
    absl::Time start;
    absl::Time deadline;
    absl::string_view name = {};  // what is moved, as the caller calls it
    bool meet = true;
  };
  Communicator(CommGroup group, int rank);

  // Backends implement these. REQUIRES size() >= 2, something to move (but for
  // an all-to-all, where others may have it), and arguments that fit one
  // another.
  virtual absl::Status DoAllReduce(const CommBlocks& data, ReduceOp op,
                                   const Call& call) = 0;
  virtual absl::Status DoReduceScatter(const CommBlocks& send,
                                       const CommBuffer& receive, ReduceOp op,
                                       const Call& call) = 0;
  virtual absl::Status DoAllGather(const CommBuffer& send,
                                   const CommBlocks& receive,
                                   const Call& call) = 0;
  virtual absl::Status DoReduce(const CommBlocks& data, int root, ReduceOp op,
                                const Call& call) = 0;
  virtual absl::Status DoBroadcast(CommBuffer data, int root,
                                   const Call& call) = 0;
  virtual absl::Status DoAllToAll(const CommBlocks& send,
                                  const CommBlocks& receive,
                                  const Call& call) = 0;
  virtual absl::Status DoSend(CommBuffer data, int peer, const Call& call) = 0;
  virtual absl::Status DoRecv(CommBuffer data, int peer, const Call& call) = 0;
  // REQUIRES that both ends are other ranks.
  virtual absl::Status DoShift(const ShiftBuffers& buffers,
                               const Call& call) = 0;
  virtual absl::Status DoBarrier(const Call& call) = 0;
  // As Outcome; the group's name is added.
  virtual absl::Status DoOutcome(const absl::Status& queue) { return queue; }
  // What a rank hands to itself: nothing, where both are one. What is
  // implemented here copies host memory.
  virtual absl::Status CopyToSelf(const CommBuffer& from, const CommBuffer& to);
  // Makes the call in progress return Cancelled(why), and tells the peers.
  // Called once at most, from any thread.
  virtual void DoAbort(const absl::Status& why) = 0;

  // "rank 2 did not come (waited 1.5s)". REQUIRES !failure.ok().
  absl::Status PeerError(const Verdict& failure, const Call& call) const;
  // "all-reduce of gradients of unit 3".
  static std::string What(const Call& call);

 private:
  absl::Status Run(const char* operation, const CommOptions& options,
                   const std::function<absl::Status(const Call&)>& body);
  // Remembers it, where nothing failed before; returns what did first.
  absl::Status Break(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  CommBlocks Cut(const CommBuffer& whole, int64_t row_elements,
                 std::vector<ElementRange>& ranges) const;
  // By `given`, where there are any; else as above.
  CommBlocks CutBy(absl::Span<const ElementRange> given,
                   const CommBuffer& whole, int64_t row_elements,
                   std::vector<ElementRange>& ranges) const;

  const CommGroup group_;
  const int rank_;
  // Of the call in progress.
  std::vector<ElementRange> send_ranges_;
  std::vector<ElementRange> receive_ranges_;
  absl::Mutex mutex_;
  absl::Status broken_ ABSL_GUARDED_BY(mutex_);  // the first error
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_COMMUNICATOR_H_
