// The part of check_program about jobs of which each step is one replica's
// (Derived.takes_turns): a replica claims the step before it does anything
// else, pulls all that it computes with, and delivers all gradients behind the
// last addend; a server admits before it steps; and nothing in a step waits for
// all replicas.
#ifndef TROUPE_PROTO_PLAN_CHECK_TURNS_H_
#define TROUPE_PROTO_PLAN_CHECK_TURNS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// REQUIRES CheckServed(plan). Errors: FailedPrecondition with role, program and
// instruction.
absl::Status CheckTurns(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_TURNS_H_
