// Keeps one bad worker from failing every job that it gets: whose fault a
// failure was. A worker on which several jobs failed, and not elsewhere, is set
// aside. What follows for a job RunControl decides.
#ifndef TROUPE_SCHEDULER_CLUSTER_WORKER_BLAME_H_
#define TROUPE_SCHEDULER_CLUSTER_WORKER_BLAME_H_

#include <string>

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/rank_seats.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

// All that take a job REQUIRE that it has a run.
class WorkerBlame {
 public:
  // Borrows both tables.
  WorkerBlame(const Limits& limits, WorkerTable& workers, JobTable& jobs)
      : limits_(limits), workers_(workers), jobs_(jobs) {}

  // The rank in this seat failed, for a cause of its worker's.
  void Failed(Job& job, const RankSeat& seat, const std::string& why,
              absl::Time now, Actions& actions);
  // All ranks are ready: where the job's start failed before, the fault was not
  // its own.
  void AllReady(Job& job, absl::Time now, Actions& actions);

 private:
  void Count(Job& job, const std::string& worker, const std::string& why,
             absl::Time now, Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WORKER_BLAME_H_
