#include "proto/plan/loaded_positions.h"

#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// Of the first tensor [batch, sequence] of a batch: they lie alike. Synthetic
// units have none.
const Dim* SequenceOfBatch(const Plan& plan) {
  for (const UnitTable& table : plan.tables()) {
    for (const TensorSpec& tensor : table.tensors()) {
      if (tensor.home() == TensorSpec::TOKENS ||
          tensor.home() == TensorSpec::TARGETS) {
        return &tensor.dims(1);
      }
    }
  }
  return nullptr;
}

}  // namespace

std::vector<Range> LoadedPositions(const Plan& plan, int rank) {
  const Dim* const sequence = SequenceOfBatch(plan);
  if (sequence == nullptr) return {{0, LoadedLength(plan)}};
  return SectionRuns(sequence->sections(0), {&plan.mesh(), rank});
}

int64_t LoadedLength(const Plan& plan) {
  const Dim* const sequence = SequenceOfBatch(plan);
  return sequence != nullptr ? DimSize(*sequence)
                             : plan.job().training().sequence_length();
}

}  // namespace troupe
