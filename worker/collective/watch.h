// Looks after the operations of all communicators of a rank, from one thread,
// whatever carries them. A wait for a peer that some backend cannot end by
// itself, since its library knows neither deadlines nor dead peers, is ended
// by this thread: every 20 ms, and when a deadline passes, it lets each backend
// look around.
//
//   watch->Add(*this);                      // joined
//   watch->Expect(deadline);                // an operation begins
//   ...
//   watch->Remove(*this);                   // before it goes
//
// The thread sleeps while no operation is under way.
//
// A rank of which a communicator has failed has failed. What ends the one may
// wait for what the others have on the device, and these for a peer that will
// never come: so where a backend says that it ends (EndAll), the watch lets all
// end with it, none behind another.
#ifndef TROUPE_WORKER_COLLECTIVE_WATCH_H_
#define TROUPE_WORKER_COLLECTIVE_WATCH_H_

#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/steady_time.h"

namespace troupe {

// What a backend has under way.
class Watched {
 public:
  // On the watch's thread: ends the wait for what cannot end well any more.
  // Returns when it wants to be asked again at the latest: the deadline of what
  // is under way; InfiniteFuture where nothing is. Waits neither for peers nor
  // for the device.
  virtual absl::Time Look() = 0;

  // Why another one ended, an error; may take a while to find out. Any thread;
  // outlives its giver.
  using Cause = std::function<absl::Status()>;
  // On the watch's thread, once another one has ended: what is on the device
  // ends, too. Does not wait. What waits on the host finds out by itself.
  virtual void EndToo(const Cause& cause) {}

 protected:
  ~Watched() = default;
};

// Thread-safe.
class Watch {
 public:
  static constexpr absl::Duration kEvery = absl::Milliseconds(20);

  Watch();
  // REQUIRES that all are removed.
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void Add(Watched& watched) ABSL_LOCKS_EXCLUDED(looking_);
  // Once this has returned, it is not asked any more.
  void Remove(Watched& watched) ABSL_LOCKS_EXCLUDED(looking_);

  // An operation begins whose deadline, by SteadyNow(), this is.
  void Expect(absl::Time deadline) ABSL_LOCKS_EXCLUDED(mutex_);

  // What calls it has ended: the others do so at once, and those that are added
  // later. Only the first cause counts. From Look, too.
  void EndAll(Watched::Cause cause) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop();
  // Of all: the soonest of what they return.
  absl::Time LookAtAll() ABSL_LOCKS_EXCLUDED(looking_);
  void EndEach(const Watched::Cause& cause) ABSL_LOCKS_EXCLUDED(looking_);

  absl::Mutex looking_;
  std::vector<Watched*> watched_ ABSL_GUARDED_BY(looking_);
  absl::Mutex mutex_;
  SteadyCondition hurry_;  // a deadline comes before the next look, or the end
  int64_t expected_ ABSL_GUARDED_BY(mutex_) = 0;  // operations so far
  // The deadline that passes first, and when all are looked at next.
  absl::Time soonest_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();
  absl::Time next_ ABSL_GUARDED_BY(mutex_);
  Watched::Cause cause_ ABSL_GUARDED_BY(mutex_);  // that all end; empty: none
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_WATCH_H_
