// Why a job has no plan: for its own sake, or for the sake of the workers that
// were to carry it out, which are too small or of the wrong kind. Others may do
// then. Both are InvalidArgument and begin with the path of a field; what tells
// them apart stays within the process.
#ifndef TROUPE_PROTO_PLAN_WORKER_REFUSAL_H_
#define TROUPE_PROTO_PLAN_WORKER_REFUSAL_H_

#include "absl/status/status.h"
#include "absl/strings/cord.h"

namespace troupe {

inline constexpr char kWorkerRefusal[] = "troupe/worker-refusal";

// The same, for the sake of the workers, if it is a refusal.
inline absl::Status ForWorkers(absl::Status status) {
  if (absl::IsInvalidArgument(status)) {
    status.SetPayload(kWorkerRefusal, absl::Cord());
  }
  return status;
}

inline bool IsForWorkers(const absl::Status& status) {
  return status.GetPayload(kWorkerRefusal).has_value();
}

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_WORKER_REFUSAL_H_
