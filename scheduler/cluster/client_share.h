// How much of what is bounded (places in the queue, questions under way) one
// client may have: half of what the others leave. So a client that is alone has
// much, several that ask for all they can get have about as much each, and
// there is a place for one that comes after them.
#ifndef TROUPE_SCHEDULER_CLUSTER_CLIENT_SHARE_H_
#define TROUPE_SCHEDULER_CLUSTER_CLIENT_SHARE_H_

#include <algorithm>

namespace troupe {

// At least one, whether or not there is room for it.
inline int ClientShare(int places, int of_others) {
  return std::max(1, (places - of_others + 1) / 2);
}

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_CLIENT_SHARE_H_
