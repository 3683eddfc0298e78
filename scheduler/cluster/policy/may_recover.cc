#include "scheduler/cluster/policy/may_recover.h"

#include <algorithm>

namespace troupe {

bool HasRestartsLeft(const AttemptEnd& end) {
  return end.restarts < end.restarts_max;
}

bool MayRecover(const AttemptEnd& end) {
  return end.is_known && end.asks &&
         (HasRestartsLeft(end) || end.moves || end.unheard || end.decided);
}

bool MayBeginAgain(const AttemptEnd& end) {
  return !end.is_known && end.asks && HasRestartsLeft(end);
}

bool IsOneLossTooMany(const AttemptEnd& end) {
  return end.asks && !HasRestartsLeft(end) && !end.unheard;
}

bool IsGivenUp(const FruitlessAttempts& attempts, const FruitlessMax& most) {
  return attempts.lost ? attempts.losses >= most.losses
                       : attempts.failures >= most.failures;
}

absl::Duration NextPause(absl::Duration pause) {
  return std::min(2 * pause, absl::Hours(1));
}

}  // namespace troupe
