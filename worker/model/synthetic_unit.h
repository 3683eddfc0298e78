// A unit that computes nothing and takes the time that the plan gives it: the
// row "synthetic" of the table in build_units.cc. Jobs of such units show what
// a schedule costs, bubbles and transfers included, on a machine with far fewer
// cores than ranks.
//
// A pass ends when its Work.wait_seconds have gone by since it began, however
// late the processor came to it in between; the thread sleeps, so that others
// may run. What it would compute it writes, as zeros: activations and gradients
// of their true size. Gradients of parameters stay as they are. The last unit
// counts its tokens, with a loss of 0.
#ifndef TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_
#define TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

// InvalidArgument where the unit is of another kind.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewSyntheticUnit(
    const UnitOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_SYNTHETIC_UNIT_H_
