// Recursive halving and doubling (Thakur, Rabenseifner and Gropp, "Optimization
// of Collective Communication Operations in MPICH", 2005): members exchange
// halves of what they have with one partner after another, at twice the
// distance each time. Of N members, a power of two, it takes 2 log2(N) messages
// one after the other where a ring takes 2 (N - 1), and sends no more bytes. So
// it is for groups of many hosts and buffers that are small for their number.
//
// Where members are no power of two, the levels are the prime factors of their
// number. Members of a host exchange at once what they have, over memory that
// they share; the hosts halve. An all-to-all goes as Bruck's does: log2(N) messages of half the
// buffer each, so more bytes than straight from member to member.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_HALVING_H_
#define TROUPE_SCHEDULER_COLLECTIVES_HALVING_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// FailedPrecondition for broadcasts, which have nothing to halve.
absl::StatusOr<LaidWay> LayHalving(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_HALVING_H_
