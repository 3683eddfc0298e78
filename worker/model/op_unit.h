// A unit that computes: the ops of its table, each by its layer. Forward runs
// them in order, the backward passes last to first.
#ifndef TROUPE_WORKER_MODEL_OP_UNIT_H_
#define TROUPE_WORKER_MODEL_OP_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/layers/op_binding.h"
#include "worker/model/model_unit.h"

namespace troupe {

// InvalidArgument as NewLayers.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewOpUnit(const UnitBinding& unit);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_OP_UNIT_H_
