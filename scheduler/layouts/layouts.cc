#include "scheduler/layouts/layouts.h"

namespace troupe {

const std::vector<LayoutRow>& Layouts() {
  static const auto* const kLayouts = new std::vector<LayoutRow>{
      // In front of what others cut of a batch.
      Batch(),
      Experts(),
      Tensor1D(),
      Sequence(),
      Tensor2DColumns(),
      Tensor2DRows(),
      Tensor25DDepth(),
      Tensor3DHidden(),
      Tensor3DInner(),
      Tensor3DRows(),
      Ulysses(),
      // Attention becomes parts last.
      UlyssesInRings(),
      RingAttention(),
      RingSelfAttention(),
  };
  return *kLayouts;
}

}  // namespace troupe
