// How the members of a group lie on hosts, as levels.
#ifndef TROUPE_SCHEDULER_COLLECTIVES_HOST_LEVELS_H_
#define TROUPE_SCHEDULER_COLLECTIVES_HOST_LEVELS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/plan.pb.h"

namespace troupe {

// Of two members or more each one.
bool HaveHostsToThemselves(absl::Span<const int> hosts);

// Within hosts, then across them. FailedPrecondition, a sentence's end: all
// members are on one host, hosts have unequal numbers of them, or they lie on
// hosts at uneven distances. REQUIRES that some share a host, or that all do.
absl::StatusOr<std::vector<Group::Level>> HostLevels(
    absl::Span<const int> hosts);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_COLLECTIVES_HOST_LEVELS_H_
