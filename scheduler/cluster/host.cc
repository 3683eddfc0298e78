#include "scheduler/cluster/host.h"

#include <algorithm>

namespace troupe {

void ClusterHost::PauseAfter(absl::Time begin) {
  constexpr absl::Duration kQuick = absl::Microseconds(500);
  constexpr absl::Duration kPauseMax = absl::Milliseconds(200);
  const absl::Time end = Now();
  if (end - begin < kQuick) return;
  schedules_again_ = end + std::min(4 * (end - begin), kPauseMax);
}

}  // namespace troupe
