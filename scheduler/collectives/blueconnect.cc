#include "scheduler/collectives/blueconnect.h"

#include "proto/base/status.h"
#include "scheduler/collectives/two_level.h"

namespace troupe {

absl::StatusOr<LaidWay> LayBlueConnect(const GroupExchange& exchange) {
  ASSIGN_OR_RETURN(LaidWay way, LayTwoLevel(exchange));
  // Of 64 pieces the first and the last, which nothing overlaps, are 3 % of the
  // buffer.
  way.pieces = {1, 2, 4, 8, 16, 32, 64};
  return way;
}

}  // namespace troupe
