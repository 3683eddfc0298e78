// A rank that dies at a moment that a test names: among the pieces of an
// all-reduce over two levels.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_MORTAL_RANK_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_MORTAL_RANK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/communicator_seat.h"

namespace troupe {

// When the rank is to make this call on its second level, counted from 0, it
// waits until its first level has ended that number of calls, so that no lane
// is inside a call, and then all of its communicators are destroyed: the peers
// see their connections end. What it calls later is Unavailable.
struct Death {
  int call = 0;
  int calls_below = 0;
};
// The rank's communicator over the two levels of `group`, which CheckWays
// takes, as CreateCommunicator makes those of the other members.
absl::StatusOr<std::unique_ptr<Communicator>> CreateMortal(
    const Group& group, const Death& death, const CommunicatorSeat& seat);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_MORTAL_RANK_H_
