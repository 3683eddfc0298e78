// Data parallelism within a micro-batch: ranks have some of its sequences each,
// and compute all that a unit does with them. They have the same parameters,
// and sum their gradients, as replicas do; so nothing is exchanged within a
// unit.
//
// Replicas (parallelism.data) have micro-batches of their own, for all units
// alike. This one may be for some units only, where others are shared otherwise
// by the same ranks.
#include "scheduler/layouts/layouts.h"

namespace troupe {

LayoutRow Batch() {
  return {.field = "batch",
          .axes = {{.name = "batch",
                    .rules = {{.kind = Dim::BATCH,
                               .field = "training.micro_batch_size"}},
                    .resting = Resting::kDealt,
                    .may_span = true}}};
}

}  // namespace troupe
