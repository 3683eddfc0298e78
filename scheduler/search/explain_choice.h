// `troupe plan --explain` of a job that leaves its parallelism open: the
// search, all of its estimates, and what would change the choice. For the
// latter the search runs again for each change that applies, with all costs
// that the change leaves as they are, and simulates fewer candidates.
#ifndef TROUPE_SCHEDULER_SEARCH_EXPLAIN_CHOICE_H_
#define TROUPE_SCHEDULER_SEARCH_EXPLAIN_CHOICE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/may_go_on.h"
#include "proto/cluster.pb.h"
#include "proto/explanation.pb.h"
#include "proto/job.pb.h"
#include "scheduler/search/search.h"

namespace troupe {

// With SearchSummary.estimates and changes. Errors as those of
// ChooseParallelism. If `may_go_on` ends it once the choice is found, the
// changes that are left say so in their text; they have `is_same` and no
// step_seconds.
absl::StatusOr<Explanation> ExplainChoice(
    const JobSpec& job, const std::vector<WorkerDescription>& workers,
    const MayGoOn& may_go_on = {}, const SearchProgress& progress = nullptr);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SEARCH_EXPLAIN_CHOICE_H_
