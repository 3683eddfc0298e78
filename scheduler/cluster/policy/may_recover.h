// Whether a job goes on after an attempt of it, and when what could not be done
// is tried again.
#ifndef TROUPE_SCHEDULER_CLUSTER_POLICY_MAY_RECOVER_H_
#define TROUPE_SCHEDULER_CLUSTER_POLICY_MAY_RECOVER_H_

#include <cstdint>

#include "absl/time/time.h"

namespace troupe {

// An attempt that was stopped, or would be.
struct AttemptEnd {
  bool asks = false;      // the job has `recovery`, and nobody cancelled it
  bool is_known = false;  // what its ranks were handed: others can take that
  int32_t restarts = 0;   // of the job, so far
  int32_t restarts_max = 0;
  bool moves = false;    // it is well, and is saved to go on elsewhere
  bool unheard = false;  // no rank has heard of it, or as good as none
  bool decided = false;  // it was found before that the job goes on
};

bool HasRestartsLeft(const AttemptEnd& end);
// The next attempt goes on in its place. One that moves, or of which nobody has
// heard, costs no restart; nor is it asked again where that is decided.
bool MayRecover(const AttemptEnd& end);
// The job is planned anew, since what its ranks were handed is not known.
bool MayBeginAgain(const AttemptEnd& end);
// A loss costs a restart and none is left, though the attempt may have been
// about to go on at no cost.
bool IsOneLossTooMany(const AttemptEnd& end);

// Attempts in a row that ended without a new step.
struct FruitlessAttempts {
  bool lost = false;  // the last one lost a worker; else it failed by itself
  int losses = 0;
  int failures = 0;
};
struct FruitlessMax {
  int losses = 0;
  int failures = 0;
};
// Two that failed by themselves would be followed by others like them. Lost
// workers are another matter, but for a step that kills them.
bool IsGivenUp(const FruitlessAttempts& attempts, const FruitlessMax& most);

// Between the next two tries to write what a disk did not take.
absl::Duration NextPause(absl::Duration pause);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_POLICY_MAY_RECOVER_H_
