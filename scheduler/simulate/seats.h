// Which ranks compute on the same processor, and how much of it each wants: CPU
// workers of one host share its cores, workers on one GPU share that.
#ifndef TROUPE_SCHEDULER_SIMULATE_SEATS_H_
#define TROUPE_SCHEDULER_SIMULATE_SEATS_H_

#include <vector>

#include "absl/types/span.h"
#include "proto/cluster.pb.h"
#include "proto/plan/rank_classes.h"

namespace troupe {

struct Seats {
  static constexpr int kOwn = -1;  // whatever others do, there is enough

  struct Seat {
    int processor = kOwn;  // index into `processors`
    double cores = 1;      // wanted while the rank computes
  };
  struct Crowded {
    double cores = 0;
    double wanted = 0;  // by all its ranks together
  };
  std::vector<Crowded> processors;
  std::vector<Seat> ranks;

  // One rank of each class for all of it: it wants what all of its class want
  // that sit with it. For first ranks only.
  Seats Of(const RankClasses& classes) const;

  // What of its cores a rank has while all compute, at most 1.
  double FairShare(int rank) const;
};

// workers[r] fills rank r. Only processors that are wanted more than there is
// of them are listed; a host that did not say how many cores it has is none.
// `lanes`: that compute at once on the cores of a worker without a GPU.
Seats SeatsOf(absl::Span<const WorkerDescription> workers, int lanes = 1);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_SEATS_H_
