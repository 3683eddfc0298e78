// What a rank's step goes into: computing, communicating, waiting for tiers of
// memory, and for others.
#ifndef TROUPE_SCHEDULER_SIMULATE_USAGE_H_
#define TROUPE_SCHEDULER_SIMULATE_USAGE_H_

#include "proto/plan/lanes.h"
#include "proto/program.pb.h"
#include "scheduler/simulate/run_programs.h"

namespace troupe {

struct Usage {
  double compute_seconds = 0;  // on lanes of that kind
  // Something moves between ranks, and the rank does not compute meanwhile. A
  // wait until the others come is none: that is the pipeline's bubble.
  double exposed_seconds = 0;
  // Something moves between tiers of memory, or the optimizer runs on the host,
  // and nothing else of the above goes on meanwhile.
  double tier_seconds = 0;
};

// REQUIRES times of the program's instructions, of a plan with these lanes.
Usage UsageOf(const Program& program, const Lanes& lanes,
              const RankTimes& times);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_USAGE_H_
