// Megatron's sequence parallelism (arXiv 2205.05198): what tensor parallelism
// leaves whole on every rank, norms, dropout and residuals, is cut by rows over
// the same ranks. Sums become reduce-scatters, with an all-gather in front of
// the next product: the same bytes, and activations a rank's share.
#include "scheduler/layouts/layouts.h"

namespace troupe {

LayoutRow Sequence() {
  return {
      .name = "sequence",
      .axis = "tensor",
      .used =
          [](const ParallelismSpec& p) {
            return p.tensor() > 1 && p.sequence_parallel();
          },
      .rules = {{.kind = Dim::SEQUENCE, .field = "training.sequence_length"}}};
}

}  // namespace troupe
