// The first operations of a communicator between GPUs, before any that counts.
//
// NCCL connects the members, and CUDA may load NCCL's kernels, when an
// operation is first called, and both may wait for all that the GPU is doing.
// Two groups whose members are first called in different orders could so wait
// for each other. Communicators are made in one order, with nothing else under
// way, so that is where this belongs.
#ifndef TROUPE_WORKER_COLLECTIVE_ENQUEUED_WARM_UP_H_
#define TROUPE_WORKER_COLLECTIVE_ENQUEUED_WARM_UP_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ops/device.h"
#include "worker/collective/communicator.h"

namespace troupe {

struct WarmUpOptions {
  Device& device;          // of the communicator's buffers
  absl::Duration timeout;  // of each operation
};

// Each collective once, and transfers between neighbours in the group, both
// ways, on a few numbers. All members call it. Errors are the communicator's:
// the member that did not come.
absl::Status WarmUp(Communicator& communicator, const WarmUpOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_COLLECTIVE_ENQUEUED_WARM_UP_H_
