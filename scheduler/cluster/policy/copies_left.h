// What a job has in the memory of its workers, now that its ranks have let go,
// and what it would lose. Copies of steps that ranks held differently are not
// counted (Run::SoundCopies).
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_COPIES_LEFT_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_COPIES_LEFT_H_

#include <set>

#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "proto/worker.pb.h"
#include "scheduler/cluster/job_table.h"
#include "scheduler/cluster/run.h"

namespace troupe {

// All of them REQUIRE run.handed.

// From which an attempt would go on; nothing: they are not whole.
absl::optional<Recovery> NewestCopies(const Run& run);
// Those, where they are newer than the newest checkpoint; nothing: there are
// none, or they cannot be saved.
absl::optional<Recovery> CopiesToSave(const Job& job);
// They cannot be saved, whatever its disk: nobody asks for that again.
bool CannotBeSaved(const Job& job);
// They are not to be saved yet, for that failed not long ago.
bool IsPaused(const Job& job, absl::Time now);
// Whether an attempt would begin with an earlier step if it could not use what
// these ranks keep.
bool LosesSteps(const Job& job, const std::set<int>& ranks);
// Whether nobody takes a place before its copies are a checkpoint. `leave`:
// some of its workers do. REQUIRES that they are being saved.
bool AwaitsCommit(const Run& run, bool leave);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_COPIES_LEFT_H_
