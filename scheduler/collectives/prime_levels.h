// The members of a group as levels of as few members each as there can be
// across hosts: of two, where the hosts are a power of two.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_
#define TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// Levels without steps. Where hosts have as many members each, at even
// distances, the first is that of all members of a host, as two_level has it,
// and the others are the prime factors of the hosts. Else they are those of all
// members. One level is the flat row, and says so. FailedPrecondition: all
// members are on one host.
absl::StatusOr<LaidWay> PrimeLevels(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_
