// A communicator made of others: one of all members, flat, and on each level
// (Group.levels) one of this rank and some of them. It executes the steps that
// the plan gives for exchanges of a size (Group.ways), whatever they are; what
// has no steps goes over the flat one: sends, shifts, all-to-alls, barriers.
//
//   {flat: gloo [0 1 2 3], levels: shared memory [0 1], gloo [0 2]}
//
// 1. Blocks. In an all-reduce a step works on a range of the buffer, in place.
//    The blocks of a reduce-scatter, an all-gather or an all-to-all that go to
//    one place of a level do not lie side by side, so they are packed,
//    kLevelScratchBytes (proto/plan/way_bytes.h) at a time. Where blocks are
//    not even, the rows that only some of them have are moved by the flat
//    communicator: so bytes are those of one communicator, and no padding
//    moves. A reduce takes the steps of an all-reduce of its size, so that its
//    root has the same bits, and instead of gathering sends what each has to
//    the root; up a tree it is an all-reduce.
// 2. Sums are taken level by level, in each in its backend's order: other bits
//    than flat ones, but the same on all ranks and in all runs. Narrow ones are
//    rounded once on each level.
// 3. Levels at once. The buffer of a way with pieces is cut into them
//    (PiecesOf); level_lanes.h has the order in which levels take them. Where a
//    cut lies decides in which block of a level an element is, and so the order
//    in which a backend like Gloo's ring adds it up: other pieces may give
//    other bits, but on a level that is in_order. Cuts follow from the plan and
//    the size alone, so that ranks and runs agree.
// 4. Failures: level_steps.h.
#ifndef TROUPE_WORKER_COLLECTIVE_LEVELS_H_
#define TROUPE_WORKER_COLLECTIVE_LEVELS_H_

#include <memory>

#include "proto/plan.pb.h"
#include "worker/collective/communicator.h"
#include "worker/collective/level_steps.h"
#include "worker/collective/watch.h"

namespace troupe {

// Of host memory. REQUIRES CheckWays, and parts that look after what is under
// way with this watch.
std::unique_ptr<Communicator> NewLevelsCommunicator(
    const Group& group, LevelParts parts, std::shared_ptr<Watch> watch);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_LEVELS_H_
