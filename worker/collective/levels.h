// A communicator made of others: one of all members, flat, and on each level
// (Group.levels) one of this rank and some of them. It executes the steps that
// the plan gives for exchanges of a size (Group.ways), whatever they are; what
// has no steps goes over the flat one: sends, shifts, all-to-alls, barriers.
//
//   {flat: gloo [0 1 2 3], levels: shared memory [0 1], gloo [0 2]}
//
// 1. Pieces. In an all-reduce a step works on a range of the buffer, in place.
//    The blocks of a reduce-scatter or an all-gather that go to one place of a
//    level do not lie side by side, so they are packed, kLevelScratchBytes
//    (proto/plan/ways.h) at a time. Where blocks are not even, the rows that
//    only some of them have are moved by the flat communicator: so bytes are
//    those of one communicator, and no padding moves. A reduce takes the steps
//    of an all-reduce of its size, so that its root has the same bits, and
//    instead of gathering sends the pieces to the root.
// 2. Sums are taken level by level, in each in its backend's order: other bits
//    than flat ones, but the same on all ranks and in all runs. Narrow ones are
//    rounded once on each level.
// 3. Failures. A rank waits for the members of one level, who may wait for
//    others on another: none of them need know who is to blame. So the watch
//    looks whether the flat communicator has seen a failure, and ends the wait;
//    and a rank whose step failed, for whatever reason, asks all members to
//    meet on the flat one. Who does not come is to blame, or who died, as that
//    one says. Where all come, the step's own error stays, unless it was out of
//    time: then nobody is to blame, as whom it misses may have waited for
//    another. The steps end a little before the deadline to leave time for
//    that.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVELS_H_
#define TROUPE_WORKER_COLLECTIVE_LEVELS_H_

#include <memory>
#include <vector>

#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/watch.h"

namespace troupe {

struct LevelParts {
  std::unique_ptr<Communicator> flat;
  // By Group.levels: that of this rank, whose members are in the order of their
  // places; null where no way uses the level.
  std::vector<std::unique_ptr<Communicator>> levels;
};

// Of host memory. REQUIRES CheckWays, and parts that look after what is under
// way with this watch.
std::unique_ptr<Communicator> NewLevelsCommunicator(
    const Group& group, LevelParts parts, std::shared_ptr<Watch> watch);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVELS_H_
