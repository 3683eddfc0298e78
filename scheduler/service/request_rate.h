// How often each client may ask. One that asks more often is not refused but
// slowed down: its next request is served when its turn comes, at `per_second`,
// so that a program that asks without pause costs the others nothing and still
// gets its answers. A request that would wait longer than `wait_max` behind
// its client's others is refused.
//
// A pure state machine (the generic cell rate algorithm, ITU-T I.371): of each
// client it remembers one time. Not thread-safe.
#ifndef TROUPE_SCHEDULER_SERVICE_REQUEST_RATE_H_
#define TROUPE_SCHEDULER_SERVICE_REQUEST_RATE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"

namespace troupe {

struct RequestRateOptions {
  double per_second = 200;
  int burst = 400;  // at once, after a pause
  absl::Duration wait_max = absl::Seconds(5);
  // Beyond this number that asked lately, the others share one turn.
  size_t clients_max = 4096;
};

class RequestRate {
 public:
  explicit RequestRate(const RequestRateOptions& options) : options_(options) {}

  // For how long a request that has come now must wait; nothing: it is refused,
  // and counts for nothing. `now_ns` does not go back.
  absl::optional<absl::Duration> Take(const std::string& client,
                                      int64_t now_ns);

 private:
  // Those whose turn is over are as if they had never asked.
  void Forget(int64_t now_ns);

  const RequestRateOptions options_;
  // When the client could ask without a burst.
  absl::flat_hash_map<std::string, int64_t> next_ns_;
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SERVICE_REQUEST_RATE_H_
