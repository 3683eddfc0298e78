#include "proto/plan/ranks_needed.h"

#include <algorithm>
#include <cstdint>

#include "proto/plan/axes.h"
#include "proto/plan/mesh.h"

namespace troupe {

int RanksNeeded(const JobSpec& job) {
  int64_t ranks = 1;
  for (const Axis& axis : AxesOf(job.parallelism())) {
    ranks *= std::clamp<int64_t>(axis.size(), 1, kRanksMax);
    ranks = std::min<int64_t>(ranks, kRanksMax);
  }
  return static_cast<int>(ranks);
}

}  // namespace troupe
