// What uses a program's buffers, in which tier and when, as moves between tiers
// see it: in runs of uses for which one copy is enough.
#ifndef TROUPE_SCHEDULER_PASSES_TIER_USES_H_
#define TROUPE_SCHEDULER_PASSES_TIER_USES_H_

#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"

namespace troupe {

// An operand of an instruction, by their indices.
struct TierUse {
  int instruction = 0;
  int operand = 0;
  Tier tier = DEVICE;  // where the instruction uses it
};
using TierRun = absl::Span<const TierUse>;

// Runs whose copies stay until the next one: the buffer, and the instruction of
// the run's last use.
using StayingRuns = std::set<std::pair<int, int>>;

class TierUses {
 public:
  // Keeps nothing of the program.
  TierUses(const Program& program, const Lanes& lanes);

  // Of a buffer, in their order: each as long as the next use is in the same
  // tier and comes no later than in the next step of work there, or the run
  // stays until then. Spans of this object.
  std::vector<TierRun> RunsOf(int buffer, const StayingRuns& staying) const;

  // Steps of work of a tier: consecutive computation of one unit and
  // micro-batch. The number of that which runs there at the instruction, or ran
  // last.
  int StepAt(int instruction, Tier tier) const;

 private:
  std::vector<std::vector<TierUse>> uses_;  // by buffer
  std::vector<std::pair<int, int>> steps_;  // device, host; by instruction
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_TIER_USES_H_
