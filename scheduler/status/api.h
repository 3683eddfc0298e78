// The answers of /api/v1 as text, apart from HTTP. Each is taken under the
// host's lock as messages and written out as JSON after it. What the page asks
// for each second is small, however long a job and however large a cluster.
//
//   /cluster              counts of workers and jobs, the newest job that runs,
//                         tokens/s of all that run, when the scheduler
//                         started: job numbers mean nothing beyond it
//   /workers              {"workers": [WorkerStatus]}
//   /jobs?offset=N&limit=N
//                         {"jobs": [JobStatus], "total": N}, newest first, in
//                         brief: the newest checkpoint, a few of the workers
//   /jobs/ID              JobDescription, with no steps
//   /jobs/ID/brief?from=N its status in brief, its events after the first N
//   /jobs/ID/plan         what people look at of its plan, with the first
//                         kRanksShown ranks' predictions, and "tiers": what
//                         of all ranks' traffic is predicted [TierTraffic]
//   /jobs/ID/curves?from=N&stride=S
//                         {"stride": S, "points": [...]} (step_series.h): those
//                         that have changed since step N, or all where a point
//                         stands for another number of steps than S
//   /jobs/ID/experts?from=N&stride=S
//                         as /curves, of a mixture of experts; a point is
//                         {"first", "last", "layers": [{"unit", "load": [...]}]}
//                         (expert_loads.h): how often each expert was chosen
//                         over the mean of its layer
//   /jobs/ID/steps?from=N {"steps": [StepRecord]} after step N, at most
//                         kStepsMax of them
//   /jobs/ID/timeline     {"measured": Timeline of the last traced step,
//                         "predicted": Timeline, "stages": [Stage]}
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
inline constexpr int kJobsMax = 500;  // of one answer
inline constexpr int kRanksShown = 8;

// What follows the question mark.
struct ApiQuery {
  int64_t from = 0;
  int64_t stride = 0;
  int64_t offset = 0;
  int64_t limit = 50;
};

// `path` is what follows /api/v1; the scheduler runs since `started`.
// NOT_FOUND: no such thing.
absl::StatusOr<std::string> ApiAnswer(const ClusterHost& host,
                                      absl::string_view path,
                                      const ApiQuery& query,
                                      absl::Time started);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STATUS_API_H_
