// Tensor parallelism in two and a half dimensions (Tesseract, arXiv
// 2105.14500): several layers of q x q ranks, each with a piece of the batch of
// its own, do what those of two dimensions do (tensor_2d.cc). All layers have
// the same weights, and sum their gradients, once a step.
#include "proto/plan/axes.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {

LayoutRow Tensor25DDepth() {
  return {.name = "tensor_2.5d, depth",
          .axis = "tensor_depth",
          .used =
              [](const ParallelismSpec& p) {
                return SizeOfAxis(p, "tensor_depth") > 1;
              },
          .rules = {{.kind = Dim::BATCH,
                     .field = "training.micro_batch_size",
                     .loaded = true}}};
}

}  // namespace troupe
