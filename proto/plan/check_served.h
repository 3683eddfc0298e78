// Are parameter servers given what they need, and do they give it?
// (docs/parameter_servers.md)
#ifndef TROUPE_PROTO_PLAN_CHECK_SERVED_H_
#define TROUPE_PROTO_PLAN_CHECK_SERVED_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, where the job has servers, says
// * which unit is kept by others than its servers, or is pushed to and pulled
//   from other ranks than all of its replicas and servers
// * which rank uses parameters that it has not pulled, pushes gradients before
//   their last addend, twice or never, or steps what was not pushed
// * which server computes layers, which replica changes or saves a unit, and
//   which operands are no gradients or parameters of their unit
// and, where it has none, which unit is served.
// REQUIRES check_shape; ranks' orders are check_waits'.
absl::Status CheckServed(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_SERVED_H_
