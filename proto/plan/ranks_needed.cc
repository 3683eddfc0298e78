#include "proto/plan/ranks_needed.h"

#include <algorithm>
#include <cstdint>

#include "proto/plan/mesh.h"

namespace troupe {

int RanksNeeded(const JobSpec& job) {
  const ParallelismSpec& parallelism = job.parallelism();
  int64_t ranks = 1;
  for (const int64_t size :
       {int64_t{parallelism.has_data() ? parallelism.data() : 1},
        int64_t{parallelism.has_pipeline() ? parallelism.pipeline() : 1},
        int64_t{parallelism.has_tensor() ? parallelism.tensor() : 1}}) {
    ranks = std::min<int64_t>(ranks * std::clamp<int64_t>(size, 1, kRanksMax),
                              kRanksMax);
  }
  return static_cast<int>(ranks);
}

}  // namespace troupe
