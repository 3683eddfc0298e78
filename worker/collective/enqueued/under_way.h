// The operations of one communicator that are in a device's queue and have not
// run yet, the oldest first; and when the oldest is late.
//
//   under_way.Add({.awaited = {.what = "all-reduce of gradients",
//                              .timeout = timeout},
//                  .begin = device.Record(FenceUse::kOrder)});
//   ... enqueue it ...
//   under_way.Enqueued(device.Record(FenceUse::kOrder));
//
//   under_way.Sweep(now);         // every now and then
//   if (now >= under_way.due()) ...   // under_way.oldest() is late
//
// The host is ahead of the device: an operation may lie in the queue for as
// long as a step takes, behind what the rank itself still computes, and that is
// no peer's fault. So its time counts from when a Sweep first finds that all
// before it in the queue has run.
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_UNDER_WAY_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_UNDER_WAY_H_

#include <deque>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "ops/fence.h"
#include "worker/collective/enqueued/meeting.h"
#include "worker/collective/enqueued/transport.h"

namespace troupe {

// An operation as people see it.
struct Awaited {
  std::string what;  // "all-reduce of gradients of unit 3"
  absl::Duration timeout = absl::InfiniteDuration();
  HostMeeting::Peers peers = {};
};

// Not thread-safe.
class UnderWay {
 public:
  struct Operation {
    Awaited awaited;
    std::unique_ptr<Fence> begin;  // before it in the queue
    std::unique_ptr<Transport::Hold> hold;
    std::unique_ptr<Fence> end = nullptr;      // behind it; null: not yet in it
    absl::Time turn = absl::InfiniteFuture();  // when its time began
  };

  // REQUIRES that the one before is enqueued.
  void Add(Operation operation);
  // The newest is in the queue; null where it is not, as that failed: then it
  // is forgotten.
  void Enqueued(std::unique_ptr<Fence> end);

  // Forgets those that have run, and looks whether the oldest one's turn has
  // come.
  void Sweep(absl::Time now);

  // Whatever becomes of them, none is held any more.
  void LetGo();

  bool empty() const { return operations_.empty(); }
  // REQUIRES that there is one.
  const Awaited& oldest() const { return operations_.front().awaited; }
  // When the oldest is late; InfiniteFuture while its turn has not come, or
  // where there is none. As of the last Sweep.
  absl::Time due() const;

 private:
  std::deque<Operation> operations_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_UNDER_WAY_H_
