// Which losses the copies of the ranks' states outlive. Any one worker's, for
// each state is in the memory of two of them at least; a host's only where the
// two are not both on it.
#ifndef TROUPE_PROTO_PLAN_COPY_LOSSES_H_
#define TROUPE_PROTO_PLAN_COPY_LOSSES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "proto/plan.pb.h"

namespace troupe {

// The hosts with whose loss some rank's state is in no other memory, ascending.
// hosts[r] is that of rank r; `mirrors`: ranks hand their copies on (copies.h).
// REQUIRES every role's placements, and copies.
std::vector<std::string> HostsNotOutlived(const Plan& plan,
                                          absl::Span<const std::string> hosts,
                                          bool mirrors);

// Whether ranks are to hand their copies on: some rank's state is held by no
// other, or a host more is outlived so. Without hosts those are not known.
bool WantsMirrors(const Plan& plan, absl::Span<const std::string> hosts);

// Whether copies are to be handed to opposite ranks: hosts more are outlived so
// than half the way around the pipeline. REQUIRES that the plan's go there.
bool WantsOpposite(const Plan& plan, absl::Span<const std::string> hosts);

// "the loss of any one worker or host", "the loss of any one worker, but not of
// host a or b".
std::string LossesOutlived(const Plan& plan,
                           absl::Span<const std::string> hosts, bool mirrors);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_COPY_LOSSES_H_
