// How long a worker that holds a rank takes at most to come back to a scheduler
// that was started again. The worker waits in these steps, and the scheduler as
// long as their sum, so both have them from here.
#ifndef TROUPE_PROTO_COME_BACK_H_
#define TROUPE_PROTO_COME_BACK_H_

#include <algorithm>

#include "absl/time/time.h"

namespace troupe {

// One attempt to connect, and then the wait for the scheduler's answer to the
// registration (worker/service/session.h).
inline constexpr absl::Duration kConnectMax = absl::Seconds(1);
inline constexpr absl::Duration kRegisterMax = absl::Seconds(5);
// Between two attempts, while a rank is held (worker/service/daemon.h).
inline constexpr absl::Duration kRetryHeldMax = absl::Milliseconds(500);
// The same after a refusal, of which at least half: all workers of a cluster
// may have been sent to the scheduler of another, which serves its own
// meanwhile.
inline constexpr absl::Duration kRetryRefusedMax = absl::Seconds(4);

// From when the scheduler can be reached, 10 s: an attempt that has begun just
// before that fails, or another scheduler has just refused one, and the next
// one is answered. Nothing else may come between them: a worker that holds a
// rank does not look first whether its machine is fit to run one.
inline absl::Duration ComeBackMax() {
  return std::max(kConnectMax + kRetryHeldMax, kRetryRefusedMax) + kConnectMax +
         kRegisterMax;
}

}  // namespace troupe

#endif  // TROUPE_PROTO_COME_BACK_H_
