// Which rank waits for which, in words, from what ranks say of themselves in
// their heartbeats:
//
//   rank 5 waits for RECV u7 m3 from rank 4; rank 4 has been in FORWARD u6 m3
//   for 31 s (worker-4)
//
// A rank waits where the instruction that all else on it waits for is a
// transfer or a collective, and its peer, or a member of the group, has not
// come to it. From the rank that has waited longest the waits are followed to
// those that wait for nobody: they compute, they do not answer, or all that an
// instruction needs has come and it still does not end. Only that chain is
// told.
//
// Heartbeats are a little old, and not equally so: what is said holds for ranks
// that have been where they are for seconds.
#ifndef TROUPE_SCHEDULER_CLUSTER_WHO_WAITS_H_
#define TROUPE_SCHEDULER_CLUSTER_WHO_WAITS_H_

#include <string>
#include <vector>

#include "proto/plan.pb.h"
#include "scheduler/cluster/rank_view.h"

namespace troupe {

// A rank at which a chain of waits ends.
struct Culprit {
  int rank = 0;
  bool silent = false;
  bool operator==(const Culprit&) const = default;
};

struct Waits {
  std::vector<std::string> waiters;  // "rank 5 waits for ...", first to last
  std::vector<std::string> ends;     // "rank 4 has been in ...", worst first
  std::vector<Culprit> culprits;     // all of them, by rank

  // All of it in one line; empty where nothing is known.
  std::string Text() const;
};

// How many ranks are named of those that wait in a chain, and of culprits.
inline constexpr int kWaitersNamed = 4;
inline constexpr int kCulpritsNamed = 3;

// `ranks` by rank; `plan` for its groups. Linear in the number of ranks, unless
// they wait in many collectives at once. What a worker says is not trusted:
// groups and ranks that do not exist are nobody's.
Waits WhoWaits(const Plan& plan, const std::vector<RankReport>& ranks,
               const ViewOptions& options);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_WHO_WAITS_H_
