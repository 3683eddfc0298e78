// Copies of ranks' states (proto/plan/copies.h) as a checkpoint, from which a
// plan for other workers goes on: written by those that keep them, when the
// ranks have ended, each state as its own rank would have saved it.
#ifndef TROUPE_WORKER_ENGINE_SAVE_COPIES_H_
#define TROUPE_WORKER_ENGINE_SAVE_COPIES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/base/clock.h"
#include "proto/plan.pb.h"
#include "proto/status.pb.h"
#include "proto/worker.pb.h"
#include "storage/checkpoint/commit.h"
#include "worker/engine/train_loop.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/state_copies.h"

namespace troupe {

// The checkpoint that is asked for.
CheckpointAttempt CopiesAttempt(const JobSpec& job, const SaveCopies& request);

// Writes the state of the rank whose `plan` this is (as in an Assignment) from
// a copy of it. FailedPrecondition: it is not among those `kept`.
absl::StatusOr<ShardRecord> WriteCopy(const CopyToSave& copy,
                                    const CheckpointAttempt& attempt,
                                    const KeptMemory& kept,
                                    const RankResources& resources,
                                    DiskLog& log);

// Commits what all have written. Older checkpoints stay, for no scheduler may
// ever hear of this one; the attempt that goes on from it removes them.
// REQUIRES request.commits: of a rank that reads the job's data, if one is
// left. An earlier attempt of the job that still holds the directory loses it.
absl::StatusOr<CheckpointRecord> CommitCopies(const SaveCopies& request,
                                              const Clock& clock);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_SAVE_COPIES_H_
