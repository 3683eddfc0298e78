// Which part of its samples a rank loads.
#ifndef TROUPE_PROTO_PLAN_LOADED_POSITIONS_H_
#define TROUPE_PROTO_PLAN_LOADED_POSITIONS_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// Positions of each sequence, in runs as they lie: as many on each rank.
std::vector<Range> LoadedPositions(const Plan& plan, int rank);
int64_t LoadedLength(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LOADED_POSITIONS_H_
