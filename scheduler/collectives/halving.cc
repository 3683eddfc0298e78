#include "scheduler/collectives/halving.h"

#include "proto/base/status.h"
#include "scheduler/collectives/prime_levels.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {

absl::StatusOr<LaidWay> LayHalving(const GroupExchange& exchange) {
  if (exchange.collective == BROADCAST) {
    return absl::FailedPreconditionError(
        "a broadcast has no halves to exchange; the row tree is for it");
  }
  ASSIGN_OR_RETURN(LaidWay way, PrimeLevels(exchange));
  if (way.levels.empty()) return way;
  ASSIGN_OR_RETURN(way.steps, StepsOver(exchange.collective,
                                        static_cast<int>(way.levels.size())));
  return way;
}

}  // namespace troupe
