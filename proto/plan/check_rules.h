// Whether a plan trains each parameter by the rule that optimizer.groups gives
// it: its part names the rule, and parts are laid as the optimizer's states
// need it (optimizer_states.h).
#ifndef TROUPE_PROTO_PLAN_CHECK_RULES_H_
#define TROUPE_PROTO_PLAN_CHECK_RULES_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition "unit 2: transformer.wte.weight ...".
absl::Status CheckRules(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_RULES_H_
