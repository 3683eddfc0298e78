#include "scheduler/collectives/two_level.h"

#include "proto/base/status.h"
#include "scheduler/collectives/host_levels.h"
#include "scheduler/collectives/steps_over.h"

namespace troupe {

absl::StatusOr<LaidWay> LayTwoLevel(const GroupExchange& exchange) {
  LaidWay way;
  if (HaveHostsToThemselves(exchange.hosts)) {
    way.why_flat = "each of its members has a host to itself";
    return way;
  }
  ASSIGN_OR_RETURN(way.levels, HostLevels(exchange.hosts));
  ASSIGN_OR_RETURN(way.steps, StepsOver(exchange.collective,
                                        static_cast<int>(way.levels.size())));
  return way;
}

}  // namespace troupe
