// The steps of a collective over any factorisation of its members, level after
// level (Cho et al., "BlueConnect: Decomposing All-Reduce for Deep Learning on
// Heterogeneous Network Hierarchy", MLSys 2019): on each level in turn the
// members of a communicator share out what they have, so that the next, slower
// level moves a fraction of it.
//
//   all-reduce      reduce-scatter on each level but the last, all-reduce on
//                   the last, all-gather on the others in the other order
//   reduce-scatter  reduce-scatter on each level
//   all-gather      all-gather on each level, the last one first
//   broadcast       broadcast on each level, the last one first
//   all-to-all      all-to-all on each level: of blocks that go to one place of
//                   the next level, those of all members of this one together
//
// Of S bytes each of N members sends what a ring of all would send: 2 (N - 1) /
// N S in an all-reduce, half of that in a reduce-scatter or an all-gather. In
// an all-to-all it sends (p - 1) / p S on each level of p members: more bytes
// than straight to each member, in fewer messages.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_STEPS_OVER_H_
#define TROUPE_SCHEDULER_COLLECTIVES_STEPS_OVER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/plan.pb.h"

namespace troupe {

// `levels`: how many, the fastest first. FailedPrecondition for other
// collectives. REQUIRES one level or more.
absl::StatusOr<std::vector<Group::Step>> StepsOver(Collective collective,
                                                   int levels);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_STEPS_OVER_H_
