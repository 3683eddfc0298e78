// How fast two ranks of this host talk: two threads, each with a communicator
// such as a plan's group gets, exchange small and large messages.
#ifndef TROUPE_WORKER_CALIBRATE_LINK_RATE_H_
#define TROUPE_WORKER_CALIBRATE_LINK_RATE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"

namespace troupe {

struct LinkRateOptions {
  int64_t bytes = 8 << 20;  // of the large messages
  int repeats = 4;
};

// From all-reduces, since that is what a step does: over two ranks one takes
// 2 latencies, and sends as many bytes as the buffer has. Errors: those of the
// communicators. `backend`: "gloo", over the loopback interface, or
// "shared_memory".
absl::StatusOr<LinkRate> MeasureLink(const std::string& backend,
                                     const Clock& clock,
                                     const LinkRateOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_LINK_RATE_H_
