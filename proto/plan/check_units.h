// A part of check_program: units, and the tables of what they do. Code that
// builds layers from a plan relies on it: nothing there points outside, and no
// buffer is smaller than what the ops put into it.
#ifndef TROUPE_PROTO_PLAN_CHECK_UNITS_H_
#define TROUPE_PROTO_PLAN_CHECK_UNITS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition: names the unit or the table, and the op. Looks at units
// and tables only.
absl::Status CheckUnits(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_UNITS_H_
