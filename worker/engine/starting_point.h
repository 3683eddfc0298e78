// Where a rank's training starts: sets its weights and moments, from the job's
// seed or from the checkpoint that it resumes, and says which step is next.
#ifndef TROUPE_WORKER_ENGINE_STARTING_POINT_H_
#define TROUPE_WORKER_ENGINE_STARTING_POINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/collective/key_value_store.h"
#include "worker/engine/rank_listener.h"
#include "worker/rank/disk_log.h"
#include "worker/rank/initial_state.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct StartOptions {
  // A checkpoint's directory or a folder of such, `latest`, `auto`, or empty.
  std::string resume;
  int64_t last_step = 0;  // of the run
  std::string name;       // of this worker, for messages
};

// What it starts with: the disk, and the store in which ranks agree.
struct StartResources {
  RankDisk disk;
  KeyValueStore& store;
};

struct StartingPoint {
  TrainingPosition position;
  std::string resumed_from;  // a checkpoint's directory; empty: none
  bool is_newest = false;    // of a folder, so that an older one would do
};

// Of a folder that holds checkpoints the newest is meant that is whole, in all
// that any rank reads of it: one flipped bit would train on silently. `latest`
// stands for the job's own folder. Rank 0 looks for it; where another rank
// finds it damaged while it loads, rank 0 chooses an older one for all
// (start_agreement.h). Only what is torn or damaged is skipped, and the
// listener is warned of it; any other error is one. With `auto` a folder without
// any checkpoint is a fresh start; one in which all are damaged is an error, for
// training would begin again unnoticed. The listener is warned too
// of what becomes of checkpoints that an earlier run left in the directory.
// When this returns the device has done its part, and all ranks have come as
// far.
absl::StatusOr<StartingPoint> SetStartingPoint(const StartOptions& options,
                                               const StartResources& resources,
                                               RankState& state,
                                               RankListener& listener);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_STARTING_POINT_H_
