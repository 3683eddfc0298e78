// Which part of its micro-batches a rank loads.
#ifndef TROUPE_PROTO_PLAN_LOADED_BATCH_H_
#define TROUPE_PROTO_PLAN_LOADED_BATCH_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// Of each micro-batch these samples, of each of them these positions, in runs
// as they lie: as many on each rank.
struct LoadedBatch {
  Range samples;
  std::vector<Range> positions;
};
LoadedBatch LoadedBy(const Plan& plan, int rank);

// Of a micro-batch, on any rank.
int64_t LoadedTokens(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LOADED_BATCH_H_
