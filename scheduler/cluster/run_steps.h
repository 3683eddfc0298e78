// The steps that ranks report and the checkpoints that rank 0 commits: they
// become the job's, ranks are compared (compare_scalars.h), and told what is
// stored of their reports. Where ranks do not hold the same the attempt fails,
// and the worker that is known to be wrong is cordoned: it gets no rank of this
// job or another, until a person says otherwise.
//
// A commit that is reported again after a restart waits for the steps before
// it.
#ifndef TROUPE_SCHEDULER_CLUSTER_RUN_STEPS_H_
#define TROUPE_SCHEDULER_CLUSTER_RUN_STEPS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/action.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/late_watch.h"
#include "scheduler/cluster/limits.h"
#include "scheduler/cluster/run_verdicts.h"
#include "scheduler/cluster/step_gather.h"
#include "scheduler/cluster/worker_table.h"

namespace troupe {

class RunSteps {
 public:
  // Borrows all but the limits.
  RunSteps(const Limits& limits, WorkerTable& workers, JobTable& jobs,
           LateWatch& late, RunVerdicts& verdicts)
      : limits_(limits),
        workers_(workers),
        jobs_(jobs),
        late_(late),
        verdicts_(verdicts) {}

  // --- A rank that the run has says this ---

  void Step(Job& job, const StepReport& report, absl::Time now,
            Actions& actions);
  void Committed(Job& job, const CheckpointCommitted& committed, absl::Time now,
                 Actions& actions);

  // Those that the job has behind it where it goes on after `resumes_at`, or,
  // where that is negative, from its newest checkpoint.
  void CloseSteps(Job& job, Run& run, int64_t resumes_at, Actions& actions);
  // All ranks have let go, and these are all the reports that there will be:
  // those of steps which some rank never reported are compared, too. Returns
  // which ranks differ; empty: none.
  std::string CheckOpenSteps(Job& job, absl::Time now, Actions& actions);
  // Those of Run::early_commits become the job's checkpoints. Steps before them
  // do not run again: they are stored as they are reported.
  void StoreEarlyCommits(Job& job, absl::Time now, Actions& actions);
  // Tells ranks what is stored of their reports, now and then.
  void SayStored(Job& job, absl::Time now, Actions& actions);

 private:
  // Of the slowest machine of the run.
  absl::optional<MachinePace> PaceOf(const Run& run) const;
  void AddGathered(Job& job, GatheredStep step, Actions& actions);
  // Ranks that do not hold the same of it fail the attempt.
  void CheckAgreement(Job& job, const GatheredStep& step, absl::Time now,
                      Actions& actions);
  // What comes of the step is not used, nor are the workers that are known to
  // be wrong. Returns which ranks differ, and in what.
  std::string Distrust(Job& job, int64_t in_step,
                       const ScalarDifference& difference, Actions& actions);
  // Whether ranks may report again steps that this scheduler has not heard from
  // them, since they are there or may come back.
  bool AwaitsSteps(const Job& job, absl::Time now) const;
  // Up to this step.
  void StoreEarlyCommits(Job& job, int64_t through, absl::Time now,
                         Actions& actions);

  const Limits limits_;
  WorkerTable& workers_;
  JobTable& jobs_;
  LateWatch& late_;
  RunVerdicts& verdicts_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_RUN_STEPS_H_
