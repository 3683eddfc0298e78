// Checks that products of blocks are made of all their panels.
#ifndef TROUPE_PROTO_PLAN_CHECK_PANELS_H_
#define TROUPE_PROTO_PLAN_CHECK_PANELS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, naming table and op, unless each PRODUCT is one of a
// chain: of every place of the axes that cut its operand's columns and its
// weight's rows the panel, once and in order, of one tensor and one weight,
// going on from one another. So every rank is root of one of each kind of
// exchange, and has its gradient from that. And unless what is broadcast again
// for backward is what was broadcast. REQUIRES CheckUnits and
// CheckLayouts.
absl::Status CheckPanels(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_PANELS_H_
