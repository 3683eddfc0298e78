// A tensor of a checkpoint on its way to where a rank, or a text's model, has
// its memory.
#ifndef TROUPE_WORKER_RANK_INTO_DEVICE_H_
#define TROUPE_WORKER_RANK_INTO_DEVICE_H_

#include "ops/device.h"
#include "storage/checkpoint/load_tensors.h"
#include "worker/rank/unit_state.h"

namespace troupe {

// Borrows the device, and the tensor's memory on it, while it is loaded.
TensorToLoad IntoDevice(const StateTensor& tensor, Device& device);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_INTO_DEVICE_H_
