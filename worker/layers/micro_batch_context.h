// The micro-batch that a pass over a unit works on.
#ifndef TROUPE_WORKER_LAYERS_MICRO_BATCH_CONTEXT_H_
#define TROUPE_WORKER_LAYERS_MICRO_BATCH_CONTEXT_H_

#include <cstdint>

#include "ops/tensor.h"

namespace troupe {

struct MicroBatchContext {
  int64_t step = 0;          // picks the dropout masks; the first is 1
  int64_t first_sample = 0;  // place of its first sequence in the global batch
  bool training = false;     // false: no dropout, and no gradient of the loss
  // 1 / targets of the step that count, over all ranks and micro-batches:
  // gradients of the micro-batches then add up to that of the mean loss; times
  // what the loss is scaled by.
  double gradient_scale = 1.0;
  // The same of all tokens of the step: of losses that are means over tokens,
  // whatever these predict.
  double token_scale = 1.0;
  DType gradients_type = DType::kF32;  // of parameters
  // Parameter gradients hold zeros, as nothing of the step was added to them
  // yet. Then the products that make up most of them need not read them first.
  bool gradients_are_zero = false;
  int segment = 0;  // of the unit's (proto/plan/segments.h)
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_MICRO_BATCH_CONTEXT_H_
