#include "proto/plan/loaded_batch.h"

#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// The first tensor [batch, sequence] of a batch: they lie alike. Synthetic
// units have none.
const TensorSpec* TensorOfBatch(const Plan& plan) {
  for (const UnitTable& table : plan.tables()) {
    for (const TensorSpec& tensor : table.tensors()) {
      if (tensor.home() == TensorSpec::TOKENS ||
          tensor.home() == TensorSpec::TARGETS) {
        return &tensor;
      }
    }
  }
  return nullptr;
}

}  // namespace

LoadedBatch LoadedBy(const Plan& plan, int rank) {
  const TrainingSpec& training = plan.job().training();
  const TensorSpec* const batch = TensorOfBatch(plan);
  if (batch == nullptr) {
    return {.samples = {0, training.micro_batch_size()},
            .positions = {{0, training.sequence_length()}}};
  }
  const MeshPlace place = {&plan.mesh(), rank};
  return {.samples = SectionPiece(batch->dims(0).sections(0), place),
          .positions = SectionRuns(batch->dims(1).sections(0), place)};
}

int64_t LoadedTokens(const Plan& plan) {
  const TrainingSpec& training = plan.job().training();
  const TensorSpec* const batch = TensorOfBatch(plan);
  return batch != nullptr
             ? ElementsOf(*batch)
             : training.micro_batch_size() * training.sequence_length();
}

}  // namespace troupe
