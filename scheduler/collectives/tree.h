// A binomial tree over the members: sums go up, whole, and the result comes
// down the same way; a broadcast only comes down. Of N members, a power of two,
// an all-reduce takes 2 log2(N) - 1 messages one after the other, each of the
// whole buffer. That is for sums of a few kilobytes over many hosts: larger
// ones take fewer bytes by halving.
//
// Where members are no power of two, the levels are the prime factors of their
// number, so that a place of the tree may have more than one child on a level.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_TREE_H_
#define TROUPE_SCHEDULER_COLLECTIVES_TREE_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// FailedPrecondition for exchanges that leave each member a block.
absl::StatusOr<LaidWay> LayTree(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_TREE_H_
