// Whether a job goes on after the attempt that it has (may_recover.h), and
// where: in its places, planned anew, or saved and on other workers.
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_GOES_ON_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_GOES_ON_H_

#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/policy/may_recover.h"

namespace troupe {

// All of them REQUIRE that the job has a run.

// What of the attempt matters for that.
AttemptEnd EndOf(const Job& job);
// It was found that another attempt follows the one that was stopped.
bool IsToGoOn(const Job& job);
// In its places, on the workers that are left and others in those of the lost.
bool MayRecover(const Job& job);
// The same where a scheduler before this one handed the attempt out: its
// programs, which another worker would need, are not here, and so the job is
// compiled anew.
bool MayBeginAgain(const Job& job);
// Whether what it saves is all that it needs to go on elsewhere.
bool MayMove(const Job& job);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_GOES_ON_H_
