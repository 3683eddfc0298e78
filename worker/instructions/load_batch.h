// LOAD_BATCH: makes the tensors of the plan's batch (Plan.batch) of the samples
// of a micro-batch, in its BATCH. Which samples a rank reads follows from the
// micro-batch's step alone (docs/plan.md, "Which data a rank reads"); which
// part of a tensor, from how axes of the mesh cut its dims. Tensors that no
// unit of the rank's stages reads are not loaded. In a VALIDATE program samples
// are the validation windows in file order, spread over the ranks, in a job
// that evaluates those of its step; places past the last one get tokens of 0
// and targets of -1, which count for nothing. The host reads, and enqueues the
// copy to the device: it may read while the device is busy with what comes
// before, the last step among it.
#ifndef TROUPE_WORKER_INSTRUCTIONS_LOAD_BATCH_H_
#define TROUPE_WORKER_INSTRUCTIONS_LOAD_BATCH_H_

#include "absl/status/status.h"
#include "worker/instructions/call.h"

namespace troupe {

absl::Status RunLoadBatch(const Call& call);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_LOAD_BATCH_H_
