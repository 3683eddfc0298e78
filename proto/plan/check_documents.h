// Checks that attention and positions stay within documents where the job says
// so.
#ifndef TROUPE_PROTO_PLAN_CHECK_DOCUMENTS_H_
#define TROUPE_PROTO_PLAN_CHECK_DOCUMENTS_H_

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

// FailedPrecondition, naming table and op, unless each op that lets tokens see
// others, or that knows positions, reads where documents begin. Where the job
// does not isolate documents nothing reads them. REQUIRES CheckUnits.
absl::Status CheckDocuments(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_CHECK_DOCUMENTS_H_
