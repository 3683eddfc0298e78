// What the parts of RunControl report to it: that a run fails, is to stop, or
// may have let go. RunControl decides what follows, which may be the end of the
// run: after a call of these it may be gone (Job::run is null then).
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_VERDICTS_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_VERDICTS_H_

#include <string>

#include "absl/time/time.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/phase_data.h"

namespace troupe {

// All of them REQUIRE that the job has a run, but for FinishIfLetGo.
class RunVerdicts {
 public:
  // What was `said` went wrong, and how well that explains it.
  virtual void Fail(Job& job, Blame blame, const std::string& said,
                    absl::Time now, Actions& actions) = 0;
  // REQUIRES that it is not being stopped.
  virtual void Stop(Job& job, phase::Stopped stopped, const std::string& reason,
                    absl::Time now, Actions& actions) = 0;
  // The ranks hear another reason. REQUIRES that it is being stopped.
  // `peers_gone`: their collectives will not end by themselves.
  virtual void StopAgain(Job& job, const std::string& reason, bool peers_gone,
                         absl::Time now, Actions& actions) = 0;
  // Where no worker runs a rank of it, the job goes on or ends.
  virtual void FinishIfLetGo(Job& job, absl::Time now, Actions& actions) = 0;

 protected:
  ~RunVerdicts() = default;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_VERDICTS_H_
