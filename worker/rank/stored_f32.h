// Values of a tier as f32 in the host's memory, whichever type they rest in:
// frozen parameters rest only in the type that the model computes with.
#ifndef TROUPE_WORKER_RANK_STORED_F32_H_
#define TROUPE_WORKER_RANK_STORED_F32_H_

#include <cstdint>

#include "absl/status/status.h"
#include "ops/tensor.h"
#include "worker/rank/tier_address.h"
#include "worker/rank/tier_port.h"

namespace troupe {

// Elements of `type`: kF32, kBF16 or kF16, to which a write rounds.
struct StoredElements {
  TierAddress first;
  DType type = DType::kF32;
  int64_t count = 0;
};

// Settled when they return, but for reads and writes of f32, which the port
// settles. Errors are the disk's.
absl::Status ReadF32(TierPort& port, const StoredElements& from, float* host);
absl::Status WriteF32(TierPort& port, const StoredElements& to,
                      const float* host);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_STORED_F32_H_
