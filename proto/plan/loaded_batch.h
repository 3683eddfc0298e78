// Which part of its micro-batches a rank loads.
#ifndef TROUPE_PROTO_PLAN_LOADED_BATCH_H_
#define TROUPE_PROTO_PLAN_LOADED_BATCH_H_

#include <cstdint>
#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/layout.h"

namespace troupe {

// The first tensor [batch, sequence] of a batch among those of some units: all
// lie alike. Null where there is none, as of synthetic units.
template <typename Tables>
const TensorSpec* TensorOfBatch(const Tables& tables) {
  for (const UnitTable& table : tables) {
    for (const TensorSpec& tensor : table.tensors()) {
      if (tensor.home() == TensorSpec::TOKENS ||
          tensor.home() == TensorSpec::TARGETS) {
        return &tensor;
      }
    }
  }
  return nullptr;
}

// Of each micro-batch these samples, of each of them these positions, in runs
// as they lie: as many on each rank.
struct LoadedBatch {
  Range samples;
  std::vector<Range> positions;
};
LoadedBatch LoadedBy(const Plan& plan, int rank);

// Of a micro-batch, on any rank.
int64_t LoadedTokens(const Plan& plan);
// Where each of its documents begins, of all positions of the samples that are
// loaded; 0: no unit asks.
int64_t LoadedDocuments(const Plan& plan);
// Of the buffer BATCH: i32, tokens, their targets, documents.
int64_t BatchBytes(const Plan& plan);

// Whether a unit reads any of it.
bool ReadsBatch(const Plan& plan, const Unit& unit);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_LOADED_BATCH_H_
