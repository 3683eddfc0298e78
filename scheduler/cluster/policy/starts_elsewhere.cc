#include "scheduler/cluster/policy/starts_elsewhere.h"

#include <algorithm>

#include "scheduler/cluster/placement.h"
#include "scheduler/cluster/policy/goes_on.h"
#include "scheduler/cluster/worker_preference.h"

namespace troupe {
namespace {

// Whether the attempt is past its start. One that an earlier scheduler began
// may be, if that has stored that it ever was.
bool MayHaveTrained(const Job& job) {
  const Run& run = *job.run;
  return run.ranks.all_ready() || (run.restored != absl::InfinitePast() &&
                                   job.status.started_unix_ms() != 0);
}

}  // namespace

// One that recovers keeps its plan, and only the place of the worker is filled
// again.
bool MayStartElsewhere(const Job& job, const WorkerTable& workers,
                       int starts_max) {
  const Run& run = *job.run;
  if (job.cancelled || job.ended() || !job.defect.empty() ||
      job.status.intent() == INTENT_CANCEL || MayRecover(job) ||
      MayHaveTrained(job) || run.follows.has_value() ||
      run.between_attempts() || run.ranks.awaits() ||
      !IsOfWorker(run.blame()) ||
      (!run.tries_again && job.failed_starts + 1 >= starts_max)) {
    return false;
  }
  const bool blamed = std::any_of(
      run.ranks.begin(), run.ranks.end(), [&job](const RankSeat& seat) {
        return job.failed_on.count(seat.worker_name) > 0;
      });
  return blamed && MostOfOneKind(Without(workers.InService(), job.failed_on)) >=
                       job.least_ranks();
}

bool StartsOnceMore(const Job& job, const WorkerTable& workers,
                    int starts_max) {
  return MayBeginAgain(job) || MayStartElsewhere(job, workers, starts_max);
}

}  // namespace troupe
