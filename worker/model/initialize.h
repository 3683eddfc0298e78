// The initial weights of a job: a function of its seed and of each element's
// index in its logical tensor, so every plan starts from the same numbers.
#ifndef TROUPE_WORKER_MODEL_INITIALIZE_H_
#define TROUPE_WORKER_MODEL_INITIALIZE_H_

#include <cstdint>

#include "ops/device.h"
#include "proto/plan.pb.h"

namespace troupe {

// Writes all of a unit's flat buffer of parameters: unit.flat_elements() f32,
// alignment gaps zero.
void InitializeParameters(Device& device, const Unit& unit, uint64_t seed,
                          void* parameters);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_INITIALIZE_H_
