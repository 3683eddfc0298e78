// Communicators between devices that take operations into the queue of the
// calling thread and tell the host nothing: a call enqueues and returns, what
// is behind it in the queue follows without the host, and a fence says when it
// is done (communicator.h, "Enqueued calls").
//
// 1. Nobody waits for an operation's end to see to it. The rank's watch
//    (worker/collective/watch.h) looks after all that is under way, every
//    20 ms: whether the transport has noticed an error, and whether the oldest
//    operation waits for its peers for longer than its timeout. Then the
//    transport is aborted, so that the queue goes on and fences are reached;
//    and so are those of all communicators with that watch, each on a thread of
//    its own: an abort may wait for all that the device does, and so for
//    operations that only another abort ends.
// 2. A caller that has waited for a fence asks Outcome what it was that ended
//    there. After a failure the members meet on the host, once, to find out
//    which is to blame: the one that does not come. Members that only waited
//    for that one come within a tenth of the timeout, if they were no further
//    apart. A member that ended with another communicator has that one's
//    answer.
// 3. Where a call asks for it (CommOptions.meet), the members meet before it is
//    enqueued, too. That takes about a round trip on the host, and the device
//    may be given less than it could do; but then all members will enqueue the
//    operation, whatever else they wait for meanwhile: a first launch may wait
//    for its end (ops/cuda/first_launches.h). It is for the first step.
// 4. An abort, which may come on a thread that has other things to do, only
//    says so to the host's meeting and wakes the watch, which sees to it.
//
// A maximum may ignore NaNs, other than in communicator.h; a reduce may add up
// in another order than an all-reduce; and narrow sums may be rounded more than
// once: all that is the transport's.
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_ENQUEUED_COMMUNICATOR_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_ENQUEUED_COMMUNICATOR_H_

#include <memory>

#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"
#include "worker/collective/enqueued/meeting.h"
#include "worker/collective/enqueued/transport.h"

namespace troupe {

// How the members of a group reach one another; neither is null.
struct EnqueuedParts {
  std::unique_ptr<HostMeeting> meeting;
  std::unique_ptr<Transport> transport;
};

// On the seat's device, which is asynchronous. In a group of one there is
// nobody to meet: its parts are null.
std::unique_ptr<Communicator> NewEnqueuedCommunicator(
    const CommunicatorSeat& seat, EnqueuedParts parts);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_ENQUEUED_COMMUNICATOR_H_
