// A gradient is made by one reader of a tensor. Where a tensor has several
// readers, ops or other units, a FORK parts them: each has a tensor of its own,
// which is the same memory, and the FORK sums their gradients, from the last
// reader to the first, so that plans agree bit for bit.
//
// Norms that read a tensor before its other reader need no FORK: they add that
// one's gradient themselves. A LINEAR and the LOW_RANK that adapts it are one
// reader: the LINEAR adds the other's gradient. And an input of the unit whose gradient would be
// another tensor's (x of an ADD) gets a FORK for its one reader, which copies.
#ifndef TROUPE_PROTO_PLAN_FORK_READERS_H_
#define TROUPE_PROTO_PLAN_FORK_READERS_H_

#include <vector>

#include "proto/unit.pb.h"

namespace troupe {

// `outputs`: a tensor for each reader among other units, none of them an input
// of this one. Returns for each the tensor that is that reader's, of home
// OUTPUT.
std::vector<int> ForkReaders(const std::vector<int>& outputs, UnitTable& table);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_FORK_READERS_H_
