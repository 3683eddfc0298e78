// How long the scheduler plans one job before it gives up: who waits for a plan
// waits longer, or never hears why there is none.
#ifndef TROUPE_PROTO_PLAN_PLAN_MAX_H_
#define TROUPE_PROTO_PLAN_PLAN_MAX_H_

#include "absl/time/time.h"

namespace troupe {

inline constexpr absl::Duration kPlanMax = absl::Minutes(10);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PLAN_MAX_H_
