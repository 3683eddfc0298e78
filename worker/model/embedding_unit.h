// The EMBEDDING of a model: rows of a token table, with those of a position
// table added and dropout behind where the architecture has them.
#ifndef TROUPE_WORKER_MODEL_EMBEDDING_UNIT_H_
#define TROUPE_WORKER_MODEL_EMBEDDING_UNIT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

struct EmbeddingTables {
  std::string tokens;
  std::string positions;                  // empty: positions are none of its
  absl::optional<uint32_t> dropout_site;  // absent: never any dropout
};

// InvalidArgument as FindParameter and CheckUnitBytes.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewEmbeddingUnit(
    const UnitOptions& options, const EmbeddingTables& tables);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_EMBEDDING_UNIT_H_
