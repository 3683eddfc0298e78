// The answers of /api/v1 as text, apart from HTTP. Each is taken under the
// host's lock as messages and written out as JSON after it.
//
//   /api/v1/cluster              counts of workers and jobs, version, uptime
//   /api/v1/workers              {"workers": [WorkerStatus]}
//   /api/v1/jobs                 {"jobs": [JobStatus]}, newest first
//   /api/v1/jobs/ID              JobDescription, with no steps
//   /api/v1/jobs/ID/steps?from=N {"steps": [StepRecord]} after step N, at most
//                                kStepsMax of them
//   /api/v1/jobs/ID/timeline     {"measured": Timeline of the last traced step,
//                                "predicted": Timeline, "stages": [Stage]}
#ifndef TROUPE_SCHEDULER_STATUS_API_H_
#define TROUPE_SCHEDULER_STATUS_API_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "scheduler/cluster/host.h"

namespace troupe {

inline constexpr int kStepsMax = 5000;

// `path` is what follows /api/v1; `from` is the query's number, 0 without one.
// NOT_FOUND: no such thing.
absl::StatusOr<std::string> ApiAnswer(const ClusterHost& host,
                                      absl::string_view path, int64_t from,
                                      absl::Duration uptime);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_API_H_
