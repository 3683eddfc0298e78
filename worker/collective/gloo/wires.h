// Sends and receives over a mesh that end: with the data, or with the member to
// blame.
//
//   wires.Begin(deadline, slot);
//   Wire wire = wires.Attach(memory, bytes);
//   RETURN_IF_ERROR(wires.PostRecv(wire, {.peer = left, .bytes = 4096}));
//   RETURN_IF_ERROR(wires.WaitRecv(wire));
//   ...
//   wires.End();
//
// How a failure is found and named (the order in which things happen):
//
// 1. Gloo tells a waiting call that its peer's connection ended, but not where
// a
//    message was under way, nor when another member died; and its timeout tears
//    down all connections, so that nobody can be asked any more. Therefore
//    waits are endless for Gloo, and the rank's watch (watch.h) looks around
//    every 20 ms while an operation is in progress and interrupts the wait: a
//    member died, sent its notice, or time is up.
// 2. Each rank keeps one small receive posted for each peer. It completes with
//    the peer's Notice, or with an error where the connection ended without
//    one: that peer is dead.
// 3. A rank whose time is up sends "I wait for p" to all. They, too, are now
//    stuck, and answer in kind. So everyone can follow the chain r waits for p
//    waits for q ... to a rank that says nothing: it is the one that is
//    missing. Time is up a little before the deadline, to leave time for the
//    answers.
// 4. Having named the culprit a rank closes its connections, after its notice.
//    The communicator is broken from then on.
#ifndef TROUPE_WORKER_COLLECTIVE_GLOO_WIRES_H_
#define TROUPE_WORKER_COLLECTIVE_GLOO_WIRES_H_

#include <gloo/transport/unbound_buffer.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collective/gloo/mesh.h"
#include "worker/collective/gloo/notice.h"
#include "worker/collective/watch.h"

namespace troupe {

// Memory that takes part in an operation, with the messages under way in it:
// all sends to one peer, all receives from one peer, so that it is known which
// is missing. (Gloo tells only whose message completed last.) Several wires may
// lie over the same memory. Destroy them before the memory goes.
struct Wire {
  struct Traffic {
    int peer = -1;
    int pending = 0;
  };
  std::unique_ptr<::gloo::transport::UnboundBuffer> buffer;
  Traffic sends;
  Traffic recvs;
};

struct WireMessage {
  int peer = 0;
  size_t offset = 0;  // in the wire's memory
  size_t bytes = 0;
  // Added to the operation's slot: tells messages apart where only the two ends
  // know their size.
  uint64_t tag = 0;
  bool payload = true;  // false: it only says that it has come
};

// Abort from any thread, all else from one thread at a time.
class Wires final : private Watched {
 public:
  Wires(std::unique_ptr<GlooMesh> mesh, std::shared_ptr<Watch> watch);
  // Takes leave of the peers.
  ~Wires();
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Of payload, in messages that were posted. Any thread.
  uint64_t sent_bytes() const {
    return sent_bytes_.load(std::memory_order_relaxed);
  }

  // An operation. Messages meet messages of the same slot only, in order, so a
  // slot that tells the operation and its size keeps different calls apart.
  // REQUIRES size() >= 2.
  absl::Status Begin(absl::Time deadline, uint64_t slot);
  void End();

  // An error of these ends the operation: the verdict is in. REQUIRES: all
  // wires of the operation alive.
  Wire Attach(void* memory, size_t bytes);
  // Memory for what arrives, one piece an operation. It stays, so that it need
  // not be mapped anew each time: a few megabytes.
  char* Scratch(size_t bytes);
  absl::Status PostSend(Wire& wire, const WireMessage& message);
  absl::Status PostRecv(Wire& wire, const WireMessage& message);
  // Waits for one send (one receive) of the wire to complete. Receives from one
  // peer complete in order. A send is complete when its memory may be changed.
  absl::Status WaitSend(Wire& wire);
  absl::Status WaitRecv(Wire& wire);
  absl::Status WaitAllSends(absl::Span<Wire> wires);
  absl::Status WaitAllRecvs(absl::Span<Wire> wires);

  // Whether an operation could not go on, as far as peers have said or have
  // gone. While one is in progress the watch looks for it. On the watch's
  // thread.
  bool SeesFailure() ABSL_LOCKS_EXCLUDED(mutex_);

  // REQUIRES that an operation failed. Closes the connections.
  Verdict Close();
  void Abort(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_, closing_);
  // Of the operation in progress, if there is one: its own thread does what may
  // wait. Any thread.
  void Interrupt(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  enum class Wait { kNone, kSend, kRecv };

  absl::Status WaitOne(Wire& wire, Wait kind) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndWait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the member to blame, tells the peers, and returns an error.
  absl::Status Fail(int peer) ABSL_LOCKS_EXCLUDED(mutex_);
  Verdict Judge(int peer) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseMesh(int culprit) ABSL_LOCKS_EXCLUDED(mutex_, closing_);
  void CloseNow(int culprit) ABSL_EXCLUSIVE_LOCKS_REQUIRED(closing_);
  // Unless it is closed: tells the peers why it closes, under one hold, so that
  // nobody closes in between.
  void SayAndClose(Notice::Kind kind, absl::string_view text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(closing_);
  absl::Time Look() override ABSL_LOCKS_EXCLUDED(mutex_);

  const int rank_;
  const int size_;
  const std::shared_ptr<Watch> watch_;
  std::unique_ptr<GlooMesh> mesh_;    // null once closed
  std::unique_ptr<Notices> notices_;  // the watch's; once failing, the caller's
  uint64_t slot_ = 0;
  std::atomic<uint64_t> sent_bytes_{0};
  std::unique_ptr<char[]> scratch_;
  size_t scratch_bytes_ = 0;

  // Only one thread closes. Taken before mutex_.
  absl::Mutex closing_ ABSL_ACQUIRED_BEFORE(mutex_);
  absl::Mutex mutex_;
  bool active_ ABSL_GUARDED_BY(mutex_) = false;   // an operation is in progress
  bool failing_ ABSL_GUARDED_BY(mutex_) = false;  // for good
  absl::Status aborted_ ABSL_GUARDED_BY(mutex_);
  absl::Time soft_deadline_ ABSL_GUARDED_BY(mutex_);  // see 3.
  absl::Time deadline_ ABSL_GUARDED_BY(mutex_);
  Wait waiting_ ABSL_GUARDED_BY(mutex_) = Wait::kNone;
  Wire* wire_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the wait
  Verdict verdict_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_GLOO_WIRES_H_
