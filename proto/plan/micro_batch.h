// The shape of the work that goes through a unit at once.
#ifndef TROUPE_PROTO_PLAN_MICRO_BATCH_H_
#define TROUPE_PROTO_PLAN_MICRO_BATCH_H_

#include <cstdint>

#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

// One micro-batch on one rank.
struct MicroBatchShape {
  int64_t sequences = 0;
  int64_t sequence_length = 0;
  // Of parameters and activations, F32 or BF16; statistics (means, reciprocal
  // deviations, log-sum-exps) are f32 in either.
  ElementType dtype = F32;
  double dropout = 0;  // probability, where the model has it
  bool isolates_documents = false;  // attention and positions stay within them
  // Sequences of a step over all ranks, where each has a loss of its own
  // (Op.step_sequences); else 0.
  int64_t step_sequences = 0;
  // Of the job, resolved and borrowed; null: the model itself is trained. With
  // it all parameters are frozen but those of adapters.
  const LoraSpec* lora = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_MICRO_BATCH_H_
