// Whether what a client asks of a text is within bounds.
#ifndef TROUPE_SCHEDULER_CLUSTER_CHECK_TEXT_REQUEST_H_
#define TROUPE_SCHEDULER_CLUSTER_CHECK_TEXT_REQUEST_H_

#include "absl/status/status.h"
#include "proto/scheduler.pb.h"
#include "scheduler/cluster/limits.h"

namespace troupe {

// INVALID_ARGUMENT begins with the field.
absl::Status CheckTextRequest(const GenerateRequest& request,
                              const Limits& limits);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CHECK_TEXT_REQUEST_H_
