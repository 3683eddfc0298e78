// The HEAD of a model: a last norm, the vocabulary projection, the loss. The
// projection is `lm_head.weight`, or the table that the unit is tied to.
#ifndef TROUPE_WORKER_MODEL_HEAD_UNIT_H_
#define TROUPE_WORKER_MODEL_HEAD_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/model_unit.h"
#include "worker/model/normalization.h"
#include "worker/model/unit_options.h"

namespace troupe {

// InvalidArgument as FindParameter and CheckUnitBytes.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewHeadUnit(
    const UnitOptions& options, const Normalization::Options& norm);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_HEAD_UNIT_H_
