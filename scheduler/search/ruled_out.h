// What a search did not choose, and why, for people.
#ifndef TROUPE_SCHEDULER_SEARCH_RULED_OUT_H_
#define TROUPE_SCHEDULER_SEARCH_RULED_OUT_H_

#include <vector>

#include "absl/status/status.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/search/candidates.h"

namespace troupe {

// What to write into `job` for the choice, which is resolved.
WayFields FieldsOfChoice(const JobSpec& chosen, const JobSpec& job);

// By reason, with the candidate that lacks least memory.
void AddRuledOut(const JobSpec& job, const Candidates& candidates,
                 SearchSummary& summary);

// Of a job of which nothing fits, or nothing can be planned: what comes
// closest, and what would fit.
absl::Status RefusalOf(const JobSpec& job,
                       const std::vector<WorkerDescription>& workers,
                       const Candidates& candidates, const MayGoOn& may_go_on);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_RULED_OUT_H_
