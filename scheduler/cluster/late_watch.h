// Watches how the ranks of jobs get on between their reports: hears their
// progress, finds steps that are late, and says which rank waits for which in
// them. What follows for a job RunControl decides.
#ifndef TROUPE_SCHEDULER_CLUSTER_LATE_WATCH_H_
#define TROUPE_SCHEDULER_CLUSTER_LATE_WATCH_H_

#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/who_waits.h"

namespace troupe {

// All that take a job REQUIRE that it has a run.
class LateWatch {
 public:
  // Borrows the jobs.
  LateWatch(const Limits& limits, JobTable& jobs)
      : limits_(limits), jobs_(jobs) {}

  // A heartbeat of a rank of the job says this.
  void Hear(Job& job, const RankProgress& progress, absl::Time now) const;
  // A step that a rank reports is over, whatever its heartbeat said before.
  void HearStep(Job& job, const StepReport& step, absl::Time now) const;

  // Says of a running job that its step is late, that others are to blame now,
  // or that it goes on. Of one that does not train nothing.
  void CheckStep(Job& job, absl::Time now, Actions& actions);

  Waits WaitsOf(const Job& job, absl::Time now) const;
  // "; rank 0 waits in ... for rank 1", where this rank was silent; or empty.
  std::string WaitersFor(const Job& job, int rank, absl::Time now) const;

 private:
  void SayLate(Job& job, phase::Training& training, absl::Time now,
               Actions& actions);
  void AddLateEvent(Job& job, phase::Training& training,
                    const std::string& text, absl::Time now, Actions& actions);

  const Limits limits_;
  JobTable& jobs_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_LATE_WATCH_H_
