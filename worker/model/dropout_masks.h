// Where the masks of a unit's dropout come from: each place of the model has a
// site, a stream of random numbers of its own, and masks are indexed by the
// global batch, so that any plan draws the same.
#ifndef TROUPE_WORKER_MODEL_DROPOUT_MASKS_H_
#define TROUPE_WORKER_MODEL_DROPOUT_MASKS_H_

#include <cstdint>

#include "ops/attention.h"
#include "ops/dropout.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

// Over [sequences, time, hidden_size] of this micro-batch; nothing is dropped
// outside of training.
DropoutMask HiddenMask(const UnitOptions& options, uint32_t site,
                       const MicroBatchContext& context);

// Over the probabilities of its attention.
AttentionDropout AttentionMask(const UnitOptions& options, uint32_t site,
                               const MicroBatchContext& context);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_DROPOUT_MASKS_H_
