// The members of a group as levels of as few members each as there can be: of
// two, where they are a power of two.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_
#define TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_

#include "absl/status/statusor.h"
#include "scheduler/collectives/row.h"

namespace troupe {

// Levels without steps. Those within hosts come first, where hosts have as many
// members each, at even distances; else neighbours in the group do. One level
// or none is the flat row, and says so. FailedPrecondition: all members are on
// one host.
absl::StatusOr<LaidWay> PrimeLevels(const GroupExchange& exchange);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_PRIME_LEVELS_H_
