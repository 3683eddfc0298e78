// Where a rank's training starts: sets its weights and moments, from the job's
// seed or from the checkpoint that it resumes, and says which step is next.
#ifndef TROUPE_WORKER_ENGINE_STARTING_POINT_H_
#define TROUPE_WORKER_ENGINE_STARTING_POINT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "worker/engine/rank_listener.h"
#include "worker/rank/initial_state.h"
#include "worker/rank/rank_state.h"

namespace troupe {

struct StartOptions {
  std::string resume;     // a checkpoint's directory, `latest`, or empty
  int64_t last_step = 0;  // of the run
};

struct StartingPoint {
  TrainingPosition position;
  std::string resumed_from;  // a checkpoint's directory; empty: none
};

// `latest` is the newest checkpoint of the job's own directory whose files are
// all as the manifest lists them: one flipped bit would train on silently.
// Every rank reads them all and so finds the same one, for nobody writes there
// yet; the listener is warned of those that were skipped. It is warned too
// where another start finds steps in the directory that are still to come: an
// earlier run left them. When this returns the device has done its part.
absl::StatusOr<StartingPoint> SetStartingPoint(const StartOptions& options,
                                               RankState& state,
                                               RankListener& listener);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_STARTING_POINT_H_
