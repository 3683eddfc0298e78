// How fast two hosts talk. The first half of a group's ranks is on one, the
// second on the other; rank i and rank i + N / 2 are a pair, which exchanges
// bytes in both directions at once. First one pair alone, then all pairs at the
// same time: what they reach together is the hosts', and tells one adapter from
// several.
#ifndef TROUPE_WORKER_CALIBRATE_HOST_LINKS_H_
#define TROUPE_WORKER_CALIBRATE_HOST_LINKS_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"
#include "worker/collective/communicator.h"

namespace troupe {

struct HostLinksOptions {
  int64_t bytes_max = 0;    // that a rank sends, in all
  absl::Duration time_max;  // then it fails
};

struct HostLinks {
  LinkRate alone;  // of the first pair, which alone measures it; else empty
  double together = 0;  // bytes a second that this rank sent while all did
};

// All ranks call it. The latency is half of such an exchange of few bytes, as
// that of a calibration is (link_rate.h). Errors: those of the communicator,
// DeadlineExceeded. REQUIRES an even number of ranks.
absl::StatusOr<HostLinks> MeasureHostLinks(Communicator& communicator,
                                           const Clock& clock,
                                           const HostLinksOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_HOST_LINKS_H_
