// How a rank goes on where an earlier attempt of its job was: from copies of
// the ranks' states, which their memory still has (proto/plan/copies.h). Ranks
// that are new in it get theirs from the holders.
#ifndef TROUPE_WORKER_ENGINE_RECOVER_H_
#define TROUPE_WORKER_ENGINE_RECOVER_H_

#include "absl/status/status.h"
#include "proto/worker.pb.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// Where training stands now, for copies that are made of it; and as a
// recovery's state says, the loss scale.
KeptState KeptStateOf(int64_t step, int64_t samples_consumed,
                      const LossScale& loss_scale);

// Brings this rank's copy here, hands on what others need, and sets weights,
// moments and loss scale to what they were. All ranks call it, and have
// communicators. FailedPrecondition: a copy that the scheduler counts on is not
// here. Or the errors of communicators and tiers.
absl::Status Recover(const Recovery& recovery, RankState& state);

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_RECOVER_H_
