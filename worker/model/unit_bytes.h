// What a unit's layout of its buffers came to, against what the plan reserves:
// proto/plan counts the same tensors, and must be of the same build.
#ifndef TROUPE_WORKER_MODEL_UNIT_BYTES_H_
#define TROUPE_WORKER_MODEL_UNIT_BYTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/plan.pb.h"

namespace troupe {

struct UnitBytes {
  int64_t activation = 0;
  int64_t stash = 0;
  int64_t weight_stash = 0;
  int64_t workspace = 0;
};

// InvalidArgument where they differ.
absl::Status CheckUnitBytes(const Unit& unit, const UnitBytes& bytes);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_UNIT_BYTES_H_
