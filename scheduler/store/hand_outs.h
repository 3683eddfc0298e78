// The table hand_outs: of each job that runs and recovers from failures what
// the ranks of its attempt were handed, so that the next scheduler can begin
// the attempt after it. A plan with its programs is the largest thing in the
// store, and says much the same again and again: it is kept compressed.
#ifndef TROUPE_SCHEDULER_STORE_HAND_OUTS_H_
#define TROUPE_SCHEDULER_STORE_HAND_OUTS_H_

#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "scheduler/cluster/action.h"
#include "scheduler/store/database.h"

namespace troupe {

// In the caller's transaction. Each in place of its job's one before; then
// those of the jobs go that need none any more, as their rows say: they are
// queued again, or have ended.
absl::Status WriteHandOuts(
    Database& database, const std::map<JobId, PersistHandOut>& hand_outs,
    const std::map<JobId, std::shared_ptr<const JobRow>>& jobs);

// Null: there is none. INVALID_ARGUMENT: it is damaged, or of a build whose
// plans this one cannot carry on. DATA_LOSS: a page of the file cannot be read.
absl::StatusOr<std::shared_ptr<const HandOut>> ReadHandOut(Database& database,
                                                           JobId job,
                                                           int32_t attempt);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_STORE_HAND_OUTS_H_
