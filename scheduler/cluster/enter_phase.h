// Ways into phases of a run that several parts of RunControl take, with what
// the phase takes over from the one before (phase_data.h). Each is one edge of
// the table (phase.h).
#ifndef TROUPE_SCHEDULER_CLUSTER_ENTER_PHASE_H_
#define TROUPE_SCHEDULER_CLUSTER_ENTER_PHASE_H_

#include "absl/time/time.h"
#include "scheduler/cluster/job_table.h"

namespace troupe {

// All of them REQUIRE that the job has a run.

// No worker runs a rank of it any more, or none is to go on. Nothing happens if
// that is known.
void LetGo(Job& job, JobTable& jobs);
// It goes on when every place has a worker. REQUIRES phase::LetGo.
void WaitInPlaces(Job& job, absl::Time now, JobTable& jobs);
// Its copies are not saved now. REQUIRES phase::SavingCopies.
void SaveNoCopies(Job& job, JobTable& jobs);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_ENTER_PHASE_H_
