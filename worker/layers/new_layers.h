// From the table of a unit to layers.
#ifndef TROUPE_WORKER_LAYERS_NEW_LAYERS_H_
#define TROUPE_WORKER_LAYERS_NEW_LAYERS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/layers/layer.h"
#include "worker/layers/op_binding.h"

namespace troupe {

// One for each op, in order. REQUIRES units that CheckUnits has passed.
// InvalidArgument where an op is of a kind that this worker does not know, or a
// parameter of another shape than its op needs.
absl::StatusOr<std::vector<std::unique_ptr<Layer>>> NewLayers(
    const UnitBinding& unit);

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_NEW_LAYERS_H_
