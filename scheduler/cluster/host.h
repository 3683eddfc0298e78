// The one lock around the state machine. All events (of an RPC, a worker's
// message, the ticker) are brought here; they are applied one after another, at
// a time that never goes backwards, and their actions handed, in
// the same order, to the sink. Where there are thousands of workers, it is the
// host that says how often jobs are scheduled: an event that follows too soon
// leaves it to those behind it, or to the next tick.
//
//   absl::StatusOr<JobId> id = host.Apply(
//       [&](Cluster& cluster, absl::Time now, Actions& actions) {
//         return cluster.Submit(spec, now, actions);
//       });
//
// Nothing that waits for a disk or takes as long as a job is large may be done
// in an event: such code fails (proto/base/must_not_wait.h).
//
// Thread-safe.
#ifndef TROUPE_SCHEDULER_CLUSTER_HOST_H_
#define TROUPE_SCHEDULER_CLUSTER_HOST_H_

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/base/must_not_wait.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/cluster.h"

namespace troupe {

// Carries actions out. Called under the host's lock: must not block, nor call
// the host.
class ActionSink {
 public:
  virtual ~ActionSink() = default;
  virtual void Carry(const Actions& actions) = 0;
};

class ClusterHost {
 public:
  // Borrows all three.
  ClusterHost(Cluster& cluster, const Clock& clock, ActionSink& sink)
      : cluster_(cluster),
        clock_(clock),
        sink_(sink),
        start_(clock.Now()),
        start_nanos_(clock.MonotonicNanos()) {}

  // event(Cluster&, absl::Time now, Actions&); returns what it returns, when
  // its actions have been handed to the sink.
  template <typename Event>
  auto Apply(Event&& event) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const MustNotWait held;
    Actions actions;
    const absl::Time begin = Now();
    cluster_.set_schedules_later(begin < schedules_again_);
    const int64_t schedules = cluster_.schedules();
    struct Deliver {  // after the event, whatever it returns
      ClusterHost& host;
      Actions& actions;
      const absl::Time begin;
      const int64_t schedules;
      ~Deliver() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // the lock is held
        if (!actions.empty()) host.sink_.Carry(actions);
        if (host.cluster_.schedules() != schedules) host.PauseAfter(begin);
      }
    } deliver{*this, actions, begin, schedules};
    return std::forward<Event>(event)(cluster_, begin, actions);
  }

  // look(const Cluster&, absl::Time now).
  template <typename Look>
  auto Read(Look&& look) const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const MustNotWait held;
    return std::forward<Look>(look)(static_cast<const Cluster&>(cluster_),
                                    Now());
  }

  // The time of events: wall time at the start, continued by a clock that never
  // jumps.
  absl::Time Now() const {
    return start_ + absl::Nanoseconds(clock_.MonotonicNanos() - start_nanos_);
  }

 private:
  // An event scheduled, and began then. What takes long is not done again at
  // once: with what its actions cost, scheduling leaves most of the time to
  // other events. Where it is quick, as it is with some hundred workers, no
  // event waits for it.
  void PauseAfter(absl::Time begin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  absl::Time schedules_again_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Cluster& cluster_ ABSL_GUARDED_BY(mutex_);
  const Clock& clock_;
  ActionSink& sink_;
  const absl::Time start_;
  const int64_t start_nanos_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_HOST_H_
