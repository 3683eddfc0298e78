#include "proto/plan/loaded_batch.h"

#include <algorithm>

#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

constexpr int64_t kBytesOfI32 = 4;

}  // namespace

LoadedBatch LoadedBy(const Plan& plan, int rank) {
  const TrainingSpec& training = plan.job().training();
  const TensorSpec* const batch = TensorOfBatch(plan.tables());
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
  const TensorSpec* const batch = TensorOfBatch(plan.tables());
  return batch != nullptr
             ? ElementsOf(*batch)
             : training.micro_batch_size() * training.sequence_length();
}

int64_t LoadedDocuments(const Plan& plan) {
  for (const UnitTable& table : plan.tables()) {
    for (const TensorSpec& tensor : table.tensors()) {
      if (tensor.home() == TensorSpec::DOCUMENTS) return ElementsOf(tensor);
    }
  }
  return 0;
}

int64_t BatchBytes(const Plan& plan) {
  return kBytesOfI32 * (2 * LoadedTokens(plan) + LoadedDocuments(plan));
}

bool ReadsBatch(const Plan& plan, const Unit& unit) {
  if (!unit.has_table()) return false;
  const auto& tensors = plan.tables(unit.table()).tensors();
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorSpec& t) {
    return t.home() == TensorSpec::TOKENS || t.home() == TensorSpec::TARGETS ||
           t.home() == TensorSpec::DOCUMENTS;
  });
}

}  // namespace troupe
