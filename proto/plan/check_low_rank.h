// A part of check_units: that a LOW_RANK's numbers point into its operands.
// Its rules and its layer rely on it.
#ifndef TROUPE_PROTO_PLAN_CHECK_LOW_RANK_H_
#define TROUPE_PROTO_PLAN_CHECK_LOW_RANK_H_

#include <string>

#include "proto/plan/ops/op_rules.h"

namespace troupe {

// What is wrong with it; empty where nothing is. REQUIRES its operands to be
// those of its kind, and tensors of the table.
std::string LowRankFault(const OpView& op);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_LOW_RANK_H_
