// A tensor of a checkpoint on its way to where a rank, or a text's model, has
// its memory.
#ifndef TROUPE_WORKER_RANK_INTO_TIER_H_
#define TROUPE_WORKER_RANK_INTO_TIER_H_

#include "storage/checkpoint/load_tensors.h"
#include "worker/rank/tier_port.h"
#include "worker/rank/unit_state.h"

namespace troupe {

// Borrows the port while the tensor is loaded; then Flush that.
TensorToLoad IntoTier(const StateTensor& tensor, TierPort& port);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_INTO_TIER_H_
